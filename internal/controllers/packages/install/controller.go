// Package install reconciles Packages: it finds out which cluster a Package is for and what the cluster's active bundle has of it, sees to
// what it depends on, and keeps one HelmReleaseProxy that says all of that. What becomes of the HelmReleaseProxy is the business of add-ons;
// this package tells it in the words of packages.
//
//	Package ──target──▶ PackageBundleController ──▶ PackageBundle ──▶ version, chart, schema
//	   └──────────────────────── HelmReleaseProxy ◀──────────────────────────┘
//
// It makes no call to a workload cluster, and asks a registry only where a chart itself says which namespace it goes to. Everything is
// driven by watches. Start with Reconcile; states and conditions are made in status.go.
package install

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/controllers/fresh"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// Places says where charts are.
type Places interface {
	// ChartPlace is where the charts of a repository are, in the terms of a HelmReleaseProxy.
	ChartPlace(registry, repository string) (repoURL, chartName string)
	// Host is that of a registry, and that of the mirror that is asked before it, if there is one.
	Host(registry string) (own, mirror string)
}

// Controller reconciles Packages.
type Controller struct {
	// Client reads from the manager's cache, Live from the API server, for what can't be undone.
	Client client.Client
	Live   client.Reader
	// Values reads Secrets.
	Values *sources.Reader
	// Charts gets them.
	Charts Charts
	Places Places
	// Registry is that of images, where neither a Package nor a PackageBundleController names one.
	Registry string
	// Keys are those that bundles may be signed with.
	Keys bundle.Keys
	// Version is Drover's own.
	Version string
	// Events receives what was done.
	Events record.EventRecorder
	Clock  clock.PassiveClock
	// WatchFilter limits the controller to objects with this value of the watch label; empty means all.
	WatchFilter string

	verdicts   verdicts
	configs    configs
	namespaces *namespaces
	memory     memory
	// packages and releases are what was written last of each kind.
	packages, releases fresh.Writes
}

// step is one part of a reconcile. It says whether there is anything left for the next ones to do.
type step func(context.Context, *scope) (bool, error)

// Reconcile brings one Package closer to what it says.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := c.open(ctx, request.NamespacedName)
	if s == nil || err != nil {
		return ctrl.Result{}, err
	}
	if c.packages.Stale(s.before) {
		return ctrl.Result{RequeueAfter: fresh.Retry}, nil
	}
	for _, step := range c.steps(s) {
		further, err := step(ctx, s)
		if err != nil {
			return again(err)
		}
		if !further {
			break
		}
	}
	if err := c.close(ctx, s); err != nil {
		return again(err)
	}
	return ctrl.Result{RequeueAfter: s.after}, nil
}

// again is for what went wrong. A conflict is no error: the cache did not know yet what somebody has written.
func again(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || errors.Is(err, errStale) {
		return ctrl.Result{RequeueAfter: fresh.Retry}, nil
	}
	return ctrl.Result{}, err
}

// steps is what there is to do for a Package.
func (c *Controller) steps(s *scope) []step {
	if s.deleting() {
		return []step{c.findRelease, c.uninstall, c.letGoOfDependencies, c.finish}
	}
	return []step{
		c.findRelease,
		c.findTarget,
		c.findSource,
		c.hold,
		c.checkBundle,
		c.checkConfig,
		c.depend,
		c.want,
		c.install,
	}
}
