package active

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/model/target"
)

// startRequests starts the requests to the cluster and to registries.
func startRequests(_ context.Context, v *visit) error {
	f, c := v.facts, v.choice
	if c.state == packagesv1.ControllerIgnored {
		return reconcile.Stop
	}
	if c.queryVersion {
		v.startVersionQuery(f)
	}
	if c.checkLatest {
		v.startBundleCheck(f, f.place, "")
	}
	if c.checkActive {
		v.startBundleCheck(f, f.activePlace, f.spec.ActiveBundle)
	}
	if c.withdraw {
		work := &copying{through: f.connected, owner: f.name}
		v.start(v.copies, f.cluster, work.withdraw)
	}
	return nil
}

func (v *visit) start(r *operation.Runner, lane client.ObjectKey, do func(context.Context) (any, error)) {
	r.Start(operation.Work{For: v.Key(), Cluster: lane, Do: do})
}

// activate sets the active bundle in the spec.
func activate(ctx context.Context, v *visit) error {
	name := v.choice.activate
	if name == "" {
		return nil
	}
	previous := v.Object.Spec.ActiveBundle
	v.Object.Spec.ActiveBundle = name
	if err := v.Save(ctx); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("activating bundle %q: %w", name, err))
	}
	if previous == "" {
		v.Events.Eventf(v.Object, corev1.EventTypeNormal, "Activated", "Activated bundle %q because none was selected", name)
	} else {
		v.Events.Eventf(v.Object, corev1.EventTypeNormal, "Activated", "Activated bundle %q in place of %q according to the upgrade policy", name, previous)
	}
	activations.Inc()
	return nil
}

// syncCredentials creates the namespace of the cluster's packages, the Secret in it, and its copies
// on the cluster. A failure is reported in a condition.
func syncCredentials(ctx context.Context, v *visit) error {
	if !v.choice.sync {
		return nil
	}
	err := ignoreGone(v.sync(ctx))
	if err != nil {
		v.facts.credentials.failed = err
	}
	return err
}

func (v *visit) sync(ctx context.Context) error {
	if err := v.createNamespace(ctx); err != nil {
		return err
	}
	f := &v.facts
	c := &f.credentials
	if c.local() == leave && c.plan.empty() {
		if f.hasFinalizer && nothingLeft(*f) {
			return v.releaseFinalizer(ctx)
		}
		return nil
	}
	if !f.hasFinalizer {
		return v.addFinalizer(ctx)
	}
	if err := v.applyLocal(ctx, c); err != nil {
		return err
	}
	if f.connected == nil || c.plan.empty() || c.after > 0 {
		return nil
	}
	work := &copying{through: f.connected, owner: f.name, plan: c.plan, sources: c.sources, now: v.Clock.Now}
	v.start(v.copies, f.cluster, work.do)
	return nil
}

// createNamespace creates the namespace of the cluster's packages, for the same Cluster as the
// PackageBundleController.
func (v *visit) createNamespace(ctx context.Context) error {
	namespace := target.Namespace(v.Object.Name)
	name := namespace.Name
	existing, err := v.Secrets.Namespace(ctx, name)
	if existing != nil || err != nil {
		return err
	}
	owner.Copy(v.Object, namespace)
	err = v.Client.Create(ctx, namespace)
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsInvalid(err): // a retry can't help
		return &reconcile.Terminal{Reason: packagesv1.SyncFailedReason, Message: fmt.Sprintf("creating namespace %q: %v", name, err)}
	}
	return fmt.Errorf("creating namespace %q: %w", name, err)
}

// addFinalizer adds the finalizer before anything is created that must be deleted later.
func (v *visit) addFinalizer(ctx context.Context) error {
	if err := v.AddFinalizer(ctx, packagesv1.ControllerFinalizer); err != nil {
		return err
	}
	v.wake(v.Key()) // a new finalizer triggers no reconcile
	return nil
}

// nothingLeft reports whether all copies were deleted and none are wanted.
func nothingLeft(f facts) bool {
	c := &f.credentials
	return f.connected != nil && !c.unseen && c.failed == nil && c.mirror == nil && (c.made == nil || c.foreign) && len(c.wanted()) == 0
}

func (v *visit) releaseFinalizer(ctx context.Context) error {
	controllerutil.RemoveFinalizer(v.Object, packagesv1.ControllerFinalizer)
	if err := v.Save(ctx); err != nil {
		return err
	}
	v.wake(v.Key())
	return nil
}

// finish deletes the local Secret and removes the finalizer of a deleted object.
func finish(ctx context.Context, v *visit) error {
	if !v.choice.ends {
		return nil
	}
	f := &v.facts
	if !f.hasFinalizer {
		return reconcile.Stop
	}
	f.credentials.mirror, f.credentials.invalid = nil, nil
	if err := v.applyLocal(ctx, &f.credentials); err != nil {
		return err
	}
	if err := v.releaseFinalizer(ctx); err != nil {
		return ignoreGone(err)
	}
	if v.choice.abandon != "" {
		v.Events.Eventf(v.Object, corev1.EventTypeWarning, "Abandoned",
			"Left copied credentials on Cluster %q: %s", f.cluster, v.choice.abandon)
		abandoned.Inc()
	}
	return reconcile.Stop
}

// ignoreGone drops the error for an object that was deleted concurrently.
func ignoreGone(err error) error { return client.IgnoreNotFound(err) }
