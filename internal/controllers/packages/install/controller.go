// Package install reconciles Packages: it determines the cluster of a Package and its version in
// the cluster's active bundle, installs dependencies first, and keeps one HelmReleaseProxy up to
// date. The release controller of add-ons installs the HelmReleaseProxy; this package reports its
// progress in the status of the Package.
//
//	Package ──target──▶ PackageBundleController ──▶ PackageBundle ──▶ version, chart, schema
//	   └──────────────────────── HelmReleaseProxy ◀──────────────────────────┘
//
// It never connects to a workload cluster, and reads a chart only for its default namespace.
// Watches trigger everything. Start with Reconcile: its steps record facts, from which state.go and
// status.go compute the status.
package install

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util/annotations"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// Places locates charts.
type Places interface {
	// ChartPlace returns the location of the charts of a repository for a HelmReleaseProxy.
	ChartPlace(registry, repository string) (repoURL, chartName string)
	// Host returns the host of a registry, and of the mirror that is tried first, if there is one.
	Host(registry string) (own, mirror string)
}

// Controller reconciles Packages.
type Controller struct {
	// Client reads from the manager's cache, Live from the API server, before actions that can't be
	// undone.
	Client client.Client
	Live   client.Reader
	// Values reads Secrets.
	Values *sources.Reader
	// Charts downloads charts.
	Charts Charts
	Places Places
	// Registry is the default registry of images.
	Registry string
	// Keys are the keys that may sign bundles.
	Keys bundle.Keys
	// Version is the version of Drover.
	Version string
	Events  record.EventRecorder
	Clock   clock.PassiveClock
	// WatchFilter limits the controller to objects with this value of the watch label; empty means
	// all.
	WatchFilter string

	// metadata reads namespaces. SetupWithManager sets it.
	metadata client.Reader

	verdicts   verdicts
	configs    configs
	namespaces *namespaces
	memory     memory
}

// Reconcile brings one Package closer to its spec.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	v, err := c.opening().Open(ctx, request.NamespacedName, &packagesv1.Package{})
	if v == nil || err != nil {
		return ctrl.Result{}, err
	}
	s := newScope(v)
	if outcome := reconcile.Run(ctx, s, c.steps(s)); outcome != nil && !errors.Is(outcome, reconcile.Stop) {
		return reconcile.Result(outcome, 0) // the facts are incomplete
	}
	return c.close(ctx, s)
}

func (c *Controller) opening() reconcile.Opening[*packagesv1.Package] {
	return reconcile.Opening[*packagesv1.Package]{
		Client: c.Client, Forget: c.memory.forget,
		Skip: func(_ context.Context, p *packagesv1.Package) (bool, error) { return annotations.HasPaused(p), nil },
	}
}

// steps returns the steps for a Package.
func (c *Controller) steps(s *scope) []reconcile.Step[*scope] {
	if s.Deleting() {
		return []reconcile.Step[*scope]{
			{Doing: "reading the release", Run: c.findRelease},
			{Doing: "uninstalling the release", Run: c.uninstall},
			{Doing: "releasing dependencies", Run: c.releaseDependencies},
			{Doing: "checking whether the release was abandoned", Run: c.findAbandoned},
			{Doing: "removing the finalizer", Run: c.removeFinalizer},
		}
	}
	return []reconcile.Step[*scope]{
		{Doing: "reading the release", Run: c.findRelease},
		{Doing: "finding the target", Run: c.findTarget},
		{Doing: "finding the source", Run: c.findSource},
		{Doing: "adding the finalizer", Run: c.addFinalizer},
		{Doing: "verifying the bundle", Run: c.checkBundle},
		{Doing: "validating the config", Run: c.checkConfig},
		{Doing: "creating dependencies", Run: c.ensureDependencies},
		{Doing: "rendering the release", Run: c.renderRelease},
		{Doing: "finding the namespace", Run: c.findNamespace},
		{Doing: "applying the release", Run: c.applyRelease},
	}
}

// addFinalizer keeps the Package until its release is uninstalled.
func (c *Controller) addFinalizer(ctx context.Context, s *scope) error {
	return s.AddFinalizer(ctx, packagesv1.PackageFinalizer)
}

// close writes the status and records events for its changes.
func (c *Controller) close(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.Released(packagesv1.PackageFinalizer) {
		return ctrl.Result{}, nil
	}
	report(s.Object, &s.facts)
	c.memory.state(s.Key(), s.Object.Status.State)
	result, err := s.Close(ctx, nil, s.after)
	if equality.Semantic.DeepEqual(s.Before().Status, s.Object.Status) { // it was written
		c.recordEvents(s)
	}
	return result, err
}
