// Package packages installs curated packages from signed bundles onto clusters. It puts its parts together and holds no logic of its own:
// the map of it is the list in Setup.
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
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/source"
	"github.com/drover-dev/drover/internal/workload"
)

// Options are what packages need to know.
type Options struct {
	// Workloads tells when a cluster was connected to.
	Workloads clustercache.ClusterCache
	// Clusters are connections to workload clusters, which others may share, and Listen makes somebody be told what they say.
	Clusters *workload.Clusters
	Listen   func(func(workload.Event))
	// Metadata watches the metadata of Secrets.
	Metadata ctrlcache.Cache
	// Charts gets charts.
	Charts *artifact.Store
	// Source is where bundles come from.
	Source source.Options
	// Keys are those that bundles may be signed with. Without any, no bundle is good.
	Keys bundle.Keys
	// Version is Drover's own.
	Version string
	// KeepBundles is how many bundles that nobody uses stay, for each minor version of Kubernetes; all if it is negative.
	KeepBundles int
	// ManagementCluster is the name of the cluster that some packages must not be on.
	ManagementCluster string
	// Limits bound what happens on clusters and in registries at a time.
	Limits operation.Limits
	// WatchFilter limits the controllers to objects with this value of the watch label; empty means all.
	WatchFilter string
	// Concurrency is the number of objects of one kind that are reconciled at a time.
	Concurrency int
}

// Setup adds the controllers and webhooks to mgr. What becomes of releases is up to the controllers of add-ons.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	o.Source.Metrics = metrics.Registry
	from, err := source.New(o.Source)
	if err != nil {
		return err
	}
	var (
		events = mgr.GetEventRecorderFor("drover") //nolint:staticcheck // Cluster API's reconcilers write events of the same kind
		// A Package is looked at whenever its release moves: as many at a time as releases, or its state lags behind.
		limits   = controller.Options{MaxConcurrentReconciles: max(o.Concurrency, o.Limits.Total)}
		judging  = &bundles.Controller{Client: mgr.GetClient(), Events: events, Keys: o.Keys, Version: o.Version, Keep: o.KeepBundles}
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
		{"PackageBundle", func() error { return judging.SetupWithManager(mgr, limits) }},
		{"PackageBundleController", func() error {
			return clusters.SetupWithManager(ctx, mgr, active.Connections{Clusters: o.Workloads, Metadata: o.Metadata}, limits)
		}},
		{"Package", func() error { return packages.SetupWithManager(ctx, mgr, o.Metadata, limits) }},
		{"webhooks", func() error {
			return admission.Setup(mgr, admission.Options{Keys: o.Keys, ManagementCluster: o.ManagementCluster})
		}},
		{"the end", func() error { return mgr.Add(closing(from)) }},
	} {
		if err := part.setup(); err != nil {
			return fmt.Errorf("adding %s of packages: %w", part.name, err)
		}
	}
	return nil
}

// closing ends what is asked of registries with the manager.
func closing(from *source.Bundles) manager.RunnableFunc {
	return func(ctx context.Context) error {
		<-ctx.Done()
		from.Close()
		return nil
	}
}
