// Package packages installs curated packages from signed bundles on clusters. It only assembles the
// controllers and webhooks in the packages below; the list in Setup is their map.
package packages

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/controllers/packages/active"
	"github.com/drover-dev/drover/internal/controllers/packages/admission"
	"github.com/drover-dev/drover/internal/controllers/packages/bundles"
	"github.com/drover-dev/drover/internal/controllers/packages/install"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/model/delegation"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/source"
	"github.com/drover-dev/drover/internal/workload"
)

// Options configure the controllers and webhooks of packages.
type Options struct {
	// Workloads reports connections to clusters.
	Workloads clustercache.ClusterCache
	// Clusters are shared connections to workload clusters, and Listen subscribes to their events.
	Clusters *workload.Clusters
	Listen   func(func(workload.Event))
	// Metadata watches the metadata of Secrets.
	Metadata ctrlcache.Cache
	// Charts downloads charts.
	Charts *artifact.Store
	// Source configures the registries of bundles.
	Source source.Options
	// Keys are the keys that may sign bundles. Without keys, all bundles are rejected.
	Keys bundle.Keys
	// Version is the version of Drover.
	Version string
	// KeepBundles is the number of unused bundles to keep per minor version of Kubernetes; all if
	// it is negative.
	KeepBundles int
	// ManagementCluster is the name of the cluster that some packages are excluded from.
	ManagementCluster string
	// Policy selects the namespaces that require a service account.
	Policy *delegation.Policy
	// Limits limits concurrent requests to clusters and registries.
	Limits operation.Limits
	// WatchFilter limits the controllers to objects with this value of the watch label; empty means
	// all.
	WatchFilter string
	// Concurrency is the number of concurrent reconciles per kind.
	Concurrency int
}

// Setup adds the controllers and webhooks to mgr. The controllers of add-ons install the releases.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	o.Source.Metrics = metrics.Registry
	from, err := source.New(o.Source)
	if err != nil {
		return err
	}
	var (
		events = mgr.GetEventRecorderFor("drover") //nolint:staticcheck // Cluster API's reconcilers write events of the same API
		// A Package is reconciled whenever its release changes. Fewer workers than releases would
		// delay its status.
		limits   = controller.Options{MaxConcurrentReconciles: max(o.Concurrency, o.Limits.Total)}
		bundler  = &bundles.Controller{Client: mgr.GetClient(), Events: events, Keys: o.Keys, Version: o.Version, Keep: o.KeepBundles}
		clusters = &active.Controller{
			Client: mgr.GetClient(), Secrets: active.NewSecrets(o.Metadata, mgr.GetAPIReader()), Source: from, Clusters: o.Clusters,
			Keys: o.Keys, Version: o.Version, Limits: o.Limits, Events: events, Clock: clock.RealClock{},
		}
		packages = &install.Controller{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Values: sources.New(o.Metadata, mgr.GetAPIReader()),
			Charts: o.Charts, Places: from, Registry: o.Source.Default, Keys: o.Keys, Version: o.Version,
			Events: events, Clock: clock.RealClock{}, WatchFilter: o.WatchFilter,
		}
	)
	o.Listen(clusters.Notice)
	for _, part := range []struct {
		name  string
		setup func() error
	}{
		{"PackageBundle", func() error { return bundler.SetupWithManager(mgr, limits) }},
		{"PackageBundleController", func() error {
			return clusters.SetupWithManager(ctx, mgr, active.Connections{Clusters: o.Workloads, Metadata: o.Metadata}, limits)
		}},
		{"Package", func() error { return packages.SetupWithManager(ctx, mgr, o.Metadata, limits) }},
		{"webhooks", func() error {
			return admission.Setup(mgr, admission.Options{Keys: o.Keys, ManagementCluster: o.ManagementCluster, Policy: o.Policy})
		}},
		{"shutdown", func() error { return mgr.Add(closing(from)) }},
	} {
		if err := part.setup(); err != nil {
			return fmt.Errorf("setting up %s of packages: %w", part.name, err)
		}
	}
	return nil
}

// closing ends requests to registries when the manager stops.
func closing(from *source.Bundles) manager.RunnableFunc {
	return func(ctx context.Context) error {
		<-ctx.Done()
		from.Close()
		return nil
	}
}
