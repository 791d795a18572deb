// Package addons installs charts and manifests on every cluster that a selector matches. It wires
// its controllers and webhooks together and has no logic of its own; Setup is the map of it.
package addons

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/addons/admission"
	"github.com/drover-dev/drover/internal/controllers/addons/chart"
	"github.com/drover-dev/drover/internal/controllers/addons/holdback"
	"github.com/drover-dev/drover/internal/controllers/addons/release"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/model/delegation"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	"github.com/drover-dev/drover/internal/workload/tool/helm"
	"github.com/drover-dev/drover/internal/workload/tool/manifests"
)

// Options configure add-ons.
type Options struct {
	// Workloads connects to workload clusters.
	Workloads clustercache.ClusterCache
	// Metadata watches the metadata of ConfigMaps and Secrets.
	Metadata ctrlcache.Cache
	// Clusters are the connections to workload clusters, which others may share. Listen registers a
	// listener for their events.
	Clusters *workload.Clusters
	Listen   func(func(workload.Event))
	// Packages fetches charts, PlainHTTP allows repositories without encryption, and ResolveEvery
	// is how often a floating version is resolved again.
	Packages     *artifact.Store
	PlainHTTP    bool
	ResolveEvery time.Duration
	// Policy decides what releases may use.
	Policy *delegation.Policy
	// Limits limit concurrent operations on clusters.
	Limits operation.Limits
	// WatchFilter limits the controllers to objects with this value of the watch label; empty means
	// all.
	WatchFilter string
	// Concurrency is how many objects of a kind are reconciled at a time.
	Concurrency int
}

// Setup adds the controllers and webhooks to mgr.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := rejectOtherController(ctx, mgr.GetAPIReader()); err != nil {
		return err
	}
	var (
		events   = mgr.GetEventRecorderFor("drover") //nolint:staticcheck // Cluster API's reconcilers write events of the same kind
		limits   = controller.Options{MaxConcurrentReconciles: o.Concurrency}
		charts   = &chart.Controller{Client: mgr.GetClient(), Events: events, Clock: clock.RealClock{}, WatchFilter: o.WatchFilter}
		holding  = &holdback.Controller{Client: mgr.GetClient(), WatchFilter: o.WatchFilter}
		releases = &release.Controller{
			Client: mgr.GetClient(), Values: sources.New(o.Metadata, mgr.GetAPIReader()), Policy: o.Policy, Packages: o.Packages, Events: events,
			Clock: clock.RealClock{}, Limits: o.Limits, ResolveEvery: o.ResolveEvery, WatchFilter: o.WatchFilter, Clusters: o.Clusters,
			Tools: map[addonsv1.Tool]tool.Tool{addonsv1.Helm: helm.New(o.Packages), addonsv1.Manifests: manifests.New(o.Packages)},
		}
	)
	o.Listen(releases.HandleEvent)
	for _, part := range []struct {
		name  string
		setup func() error
	}{
		{"HelmChartProxy", func() error { return charts.SetupWithManager(ctx, mgr, limits) }},
		{"HelmReleaseProxy", func() error {
			return releases.SetupWithManager(ctx, mgr, release.Connections{Clusters: o.Workloads, Metadata: o.Metadata}, o.releaseLimits())
		}},
		{"deletion hook", func() error { return holding.SetupWithManager(mgr, limits) }},
		{"webhooks", func() error { return admission.Setup(mgr, admission.Options{PlainHTTP: o.PlainHTTP, Policy: o.Policy}) }},
	} {
		if err := part.setup(); err != nil {
			return fmt.Errorf("setting up %s for add-ons: %w", part.name, err)
		}
	}
	return nil
}

// releaseLimits has at least one worker per concurrent operation: recording the end of an operation
// mostly waits for the API server, which handles many writes at once.
func (o Options) releaseLimits() controller.Options {
	return controller.Options{MaxConcurrentReconciles: max(o.Concurrency, o.Limits.Total)}
}
