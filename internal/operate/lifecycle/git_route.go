package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/gitops"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// connectTimeout is how long the manager may take to observe a new FluxConfig. One that runs GitOps
// takes less than a second.
const connectTimeout = 20 * time.Second

// fluxNameLabel is on every object that Flux applies.
const fluxNameLabel = "kustomize.toolkit.fluxcd.io/name"

const withoutGitOps = "GitOps is not configured"

// gitKinds are the kinds without which a management plane doesn't run GitOps: the one that asks for
// a commit, and the one with which Flux applies it.
var gitKinds = []schema.GroupKind{
	{Group: droverv1.GroupVersion.Group, Kind: "GitChange"},
	{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"},
}

// route is how changes of a cluster reach its management plane.
type route struct {
	// FluxConfig names the connected repository that changes are committed to. It is empty if they
	// are applied directly.
	FluxConfig string
	// Reason is why changes are applied directly.
	Reason string
}

func (r route) isGit() bool { return r.FluxConfig != "" }

func direct(format string, args ...any) route { return route{Reason: fmt.Sprintf(format, args...)} }

// connectGit applies the cluster's FluxConfig, and decides how changes reach the management plane.
func (w *Workload) connectGit(ctx context.Context, p *phase.Progress) (route, error) {
	if flux := w.Config.Flux; flux != nil {
		if err := w.applyFlux(ctx, flux); err != nil {
			return route{}, err
		}
		if err := w.awaitFlux(ctx, p); err != nil {
			return route{}, err
		}
	}
	return w.routeOf(ctx, p, w.Config.Cluster)
}

// awaitFlux waits for Flux, which an embedded plane starts for its first FluxConfig. Without it,
// later phases don't wait again.
func (w *Workload) awaitFlux(ctx context.Context, p *phase.Progress) error {
	if w.onBootstrap {
		return nil
	}
	waited := false
	runs, err := (&gitops.Plane{Plane: w.plane}).AwaitFlux(ctx, cmp.Or(w.connectWithin, gitops.FluxTimeout), func() {
		waited = true
		p.Waiting("Waiting for the management plane to start Flux")
	})
	switch {
	case err != nil:
		return err
	case !runs:
		w.connectWithin = time.Nanosecond
	case waited: // Its manager restarts.
		w.connectWithin = newConnectTimeout
	}
	return nil
}

// applyFlux creates a FluxConfig. One that exists with this spec belongs to other clusters too and
// stays as it is.
func (w *Workload) applyFlux(ctx context.Context, flux *anywherev1.FluxConfig) error {
	live := &anywherev1.FluxConfig{}
	err := w.plane.Client.Get(ctx, client.ObjectKeyFromObject(flux), live)
	if err == nil && isShared(flux, live) {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading FluxConfig %q: %w", flux.Name, err)
	}
	_, err = apply(ctx, w.plane.Client, flux)
	return err
}

// isShared reports whether an object exists as the spec wants it and may be used by several
// clusters.
func isShared(want, live client.Object) bool {
	a, ok := want.(*anywherev1.FluxConfig)
	b, same := live.(*anywherev1.FluxConfig)
	return ok && same && equality.Semantic.DeepEqual(spec.DefaultFlux(a.Spec), spec.DefaultFlux(b.Spec))
}

// routeOf decides how changes of a cluster reach the management plane, without changing anything.
func (w *Workload) routeOf(ctx context.Context, p *phase.Progress, c *anywherev1.Cluster) (route, error) {
	ref := c.Spec.GitOpsRef
	switch {
	case ref == nil:
		return direct(withoutGitOps), nil
	case w.onBootstrap:
		return direct("the bootstrap plane does not run GitOps"), nil
	}
	for _, kind := range gitKinds {
		_, err := w.plane.Client.RESTMapper().RESTMapping(kind)
		if apimeta.IsNoMatchError(err) {
			return direct("the management plane does not run GitOps: %s %q is stored and otherwise ignored", ref.Kind, ref.Name), nil
		}
		if err != nil {
			return route{}, fmt.Errorf("checking whether the management plane runs GitOps: %w", err)
		}
	}
	// A GitOpsConfig, the older kind, stands for the FluxConfig of its name, as in the manager.
	connected, err := w.awaitConnection(ctx, p, client.ObjectKey{Namespace: c.Namespace, Name: ref.Name})
	if err == nil && connected == nil && ref.Kind == anywherev1.GitOpsConfigKind {
		return direct("no FluxConfig connects GitOpsConfig %q: the next `drover upgrade cluster` creates it", ref.Name), nil
	}
	return routeFor(ref.Name, connected), err
}

// routeFor decides by the condition of a FluxConfig, which is nil if no manager observed it.
func routeFor(name string, connected *metav1.Condition) route {
	switch {
	case connected == nil:
		return direct("the manager does not run GitOps: FluxConfig %q is stored and otherwise ignored", name)
	case connected.Status != metav1.ConditionTrue:
		return direct("FluxConfig %q is not connected to its repository: %s", name, connected.Message)
	}
	return route{FluxConfig: name}
}

// awaitConnection returns whether the repository of a FluxConfig is connected. It waits until the
// manager has observed the FluxConfig, and returns nil if that doesn't happen. If the repository
// was just connected, it also waits until the manager has observed that.
func (w *Workload) awaitConnection(ctx context.Context, p *phase.Progress, key client.ObjectKey) (*metav1.Condition, error) {
	limited, cancel := context.WithTimeout(ctx, cmp.Or(w.connectWithin, connectTimeout))
	defer cancel()
	for changes := w.plane.Watch(limited, &anywherev1.FluxConfigList{}, key); ; {
		flux := &anywherev1.FluxConfig{}
		err := w.plane.Client.Get(ctx, key, flux)
		if apierrors.IsNotFound(err) {
			return nil, nil // No manager observed it.
		}
		if err != nil {
			return nil, fmt.Errorf("reading FluxConfig %q: %w", key.Name, err)
		}
		observed := connectionOf(flux)
		if observed != nil && (observed.Status == metav1.ConditionTrue || !w.justConnected) {
			return observed, nil
		}
		p.Waiting("Waiting for the manager to observe FluxConfig %s", key.Name)
		select {
		case <-limited.Done():
			w.connectWithin = time.Nanosecond // Later phases don't wait again.
			return observed, ctx.Err()
		case <-changes:
		case <-time.After(resync):
		}
	}
}

// connectionOf returns the condition of a FluxConfig, or nil if no manager has observed its newest
// spec.
func connectionOf(flux *anywherev1.FluxConfig) *metav1.Condition {
	c := apimeta.FindStatusCondition(flux.Status.Conditions, anywherev1.RepositoryConnected)
	if c == nil || c.ObservedGeneration < flux.Generation {
		return nil
	}
	return c
}

// checkReverted rejects the upgrade of a cluster that Flux would revert, because the new spec can't
// be committed.
func (w *Workload) checkReverted(ctx context.Context, p *phase.Progress) []error {
	live, err := w.live(ctx)
	if err != nil || live.Labels[fluxNameLabel] == "" {
		return nil // The other checks report a missing cluster.
	}
	r, err := w.routeOf(ctx, p, live)
	if err != nil {
		return []error{err}
	}
	switch {
	case r.isGit():
		return nil
	case w.SkipFlux:
		p.Note("Flux manages the cluster and may revert the upgrade: commit the new spec to Git, too")
		return nil
	}
	return []error{fmt.Errorf("cluster %q is applied by Flux (Kustomization %q), which would revert the upgrade, and %s: commit the new spec to Git instead, or connect the repository with `drover gitops enable`",
		live.Name, live.Labels[fluxNameLabel], r.Reason)}
}
