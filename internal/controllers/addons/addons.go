// Package addons puts charts and manifests onto every cluster that a selector matches. It puts its parts together and holds no logic of
// its own: the map of it is the list in Setup.
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
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	"github.com/drover-dev/drover/internal/workload/tool/helm"
	"github.com/drover-dev/drover/internal/workload/tool/manifests"
)

// Options are what add-ons need to know.
type Options struct {
	// Workloads connects to workload clusters.
	Workloads clustercache.ClusterCache
	// Metadata watches the metadata of ConfigMaps and Secrets.
	Metadata ctrlcache.Cache
	// Clusters are connections to workload clusters, which others may share, and Listen makes somebody be told what they say.
	Clusters *workload.Clusters
	Listen   func(func(workload.Event))
	// Packages gets charts, PlainHTTP allows repositories without encryption, and ResolveEvery is how often a version that may move is looked up.
	Packages     *artifact.Store
	PlainHTTP    bool
	ResolveEvery time.Duration
	// Limits bound what happens on clusters at a time.
	Limits operation.Limits
	// WatchFilter limits the controllers to objects with this value of the watch label; empty means all.
	WatchFilter string
	// Concurrency is the number of objects of one kind that are reconciled at a time.
	Concurrency int
}

// Setup adds the controllers and webhooks to mgr.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := alone(ctx, mgr.GetAPIReader()); err != nil {
		return err
	}
	var (
		events   = mgr.GetEventRecorderFor("drover") //nolint:staticcheck // Cluster API's reconcilers write events of the same kind
		limits   = controller.Options{MaxConcurrentReconciles: o.Concurrency}
		charts   = &chart.Controller{Client: mgr.GetClient(), Events: events, Clock: clock.RealClock{}, WatchFilter: o.WatchFilter}
		holding  = &holdback.Controller{Client: mgr.GetClient(), WatchFilter: o.WatchFilter}
		releases = &release.Controller{
			Client: mgr.GetClient(), Values: sources.New(o.Metadata, mgr.GetAPIReader()), Packages: o.Packages, Events: events,
			Clock: clock.RealClock{}, Limits: o.Limits, ResolveEvery: o.ResolveEvery, WatchFilter: o.WatchFilter, Clusters: o.Clusters,
			Tools: map[addonsv1.Tool]tool.Tool{addonsv1.Helm: helm.New(o.Packages), addonsv1.Manifests: manifests.New(o.Packages)},
		}
	)
	o.Listen(releases.Notice)
	for _, part := range []struct {
		name  string
		setup func() error
	}{
		{"HelmChartProxy", func() error { return charts.SetupWithManager(ctx, mgr, limits) }},
		{"HelmReleaseProxy", func() error {
			return releases.SetupWithManager(ctx, mgr, release.Connections{Clusters: o.Workloads, Metadata: o.Metadata}, o.releaseLimits())
		}},
		{"holding back", func() error { return holding.SetupWithManager(mgr, limits) }},
		{"webhooks", func() error { return admission.Setup(mgr, admission.Options{PlainHTTP: o.PlainHTTP}) }},
	} {
		if err := part.setup(); err != nil {
			return fmt.Errorf("adding %s of add-ons: %w", part.name, err)
		}
	}
	return nil
}

// releaseLimits has as many workers as there are operations: each that ends is written down, and a worker waits for the API server meanwhile,
// which takes many writes at a time for hardly more than one.
func (o Options) releaseLimits() controller.Options {
	return controller.Options{MaxConcurrentReconciles: max(o.Concurrency, o.Limits.Total)}
}
