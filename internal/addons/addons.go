// Package addons puts charts and manifests onto every cluster that a selector matches. It puts its parts together and holds no logic of
// its own: the map of it is the list in Setup.
package addons

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

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/addons/admission"
	"github.com/drover-dev/drover/internal/addons/chart"
	"github.com/drover-dev/drover/internal/addons/holdback"
	"github.com/drover-dev/drover/internal/addons/manifests"
	"github.com/drover-dev/drover/internal/addons/operation"
	"github.com/drover-dev/drover/internal/addons/release"
	"github.com/drover-dev/drover/internal/addons/tool"
	"github.com/drover-dev/drover/internal/artifact"
	"github.com/drover-dev/drover/internal/helm"
	"github.com/drover-dev/drover/internal/workload"
)

// Options are what add-ons need to know.
type Options struct {
	// Workloads connects to workload clusters.
	Workloads clustercache.ClusterCache
	// Metadata watches the metadata of ConfigMaps and Secrets.
	Metadata ctrlcache.Cache
	// Packages says where charts are kept, and which repositories are allowed.
	Packages artifact.Options
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
	o.Packages.Metrics = metrics.Registry
	packages, err := artifact.Open(o.Packages)
	if err != nil {
		return err
	}
	var (
		events   = mgr.GetEventRecorderFor("drover") //nolint:staticcheck // Cluster API's reconcilers write events of the same kind
		limits   = controller.Options{MaxConcurrentReconciles: o.Concurrency}
		charts   = &chart.Controller{Client: mgr.GetClient(), Events: events, Clock: clock.RealClock{}, WatchFilter: o.WatchFilter}
		holding  = &holdback.Controller{Client: mgr.GetClient(), WatchFilter: o.WatchFilter}
		releases = &release.Controller{
			Client: mgr.GetClient(), Values: release.NewSources(o.Metadata, mgr.GetAPIReader()), Packages: packages, Events: events,
			Clock: clock.RealClock{}, Limits: o.Limits, ResolveEvery: o.Packages.ResolveEvery, WatchFilter: o.WatchFilter,
			Tools: map[addonsv1.Tool]tool.Tool{addonsv1.Helm: helm.New(packages), addonsv1.Manifests: manifests.New(packages)},
		}
	)
	releases.Clusters = workload.New(o.Workloads, workload.Options{Notify: releases.Notice})
	for _, part := range []struct {
		name  string
		setup func() error
	}{
		{"HelmChartProxy", func() error { return charts.SetupWithManager(ctx, mgr, limits) }},
		{"HelmReleaseProxy", func() error {
			return releases.SetupWithManager(ctx, mgr, release.Connections{Clusters: o.Workloads, Metadata: o.Metadata}, limits)
		}},
		{"holding back", func() error { return holding.SetupWithManager(mgr, limits) }},
		{"webhooks", func() error { return admission.Setup(mgr, admission.Options{PlainHTTP: o.Packages.PlainHTTP}) }},
		{"the end", func() error { return mgr.Add(closing(releases.Clusters, packages)) }},
	} {
		if err := part.setup(); err != nil {
			return fmt.Errorf("adding %s of add-ons: %w", part.name, err)
		}
	}
	return nil
}

// closing ends connections with the manager.
func closing(clusters *workload.Clusters, packages *artifact.Store) manager.RunnableFunc {
	return func(ctx context.Context) error {
		<-ctx.Done()
		clusters.Close()
		packages.Close()
		return nil
	}
}
