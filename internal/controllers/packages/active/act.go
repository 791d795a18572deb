package active

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/operation"
)

// act begins what takes time, and does the rest. That credentials can't be written keeps no bundle from being activated.
func (v *visit) act(ctx context.Context, f *facts, c choice) error {
	if c.state == packagesv1.ControllerIgnored {
		return nil
	}
	if c.ask {
		v.ask(*f)
	}
	if c.look {
		v.find(*f, f.place, "")
	}
	if c.fetch {
		v.find(*f, f.activePlace, f.spec.ActiveBundle)
	}
	if c.withdraw {
		work := &copying{through: f.connected, owner: f.name}
		v.start(v.copies, f.cluster, work.withdraw)
	}
	var failed error
	if c.sync {
		if failed = conflictsAside(v.sync(ctx, *f)); failed != nil {
			f.credentials.failed = failed
		}
	}
	if c.activate != "" {
		return errors.Join(failed, v.activate(ctx, c.activate))
	}
	return failed
}

func (v *visit) start(r *operation.Runner, lane client.ObjectKey, do func(context.Context) (any, error)) {
	r.Start(operation.Work{For: v.key(), Cluster: lane, Do: do})
}

// activate writes the spec, if nobody else did meanwhile.
func (v *visit) activate(ctx context.Context, name string) error {
	was := v.object.Spec.ActiveBundle
	base := v.object.DeepCopy()
	changed := v.object.DeepCopy()
	changed.Spec.ActiveBundle = name
	if err := v.Client.Patch(ctx, changed, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return conflictsAside(fmt.Errorf("activating bundle %q: %w", name, err))
	}
	v.wrote(changed)
	if was == "" {
		v.Events.Eventf(v.object, corev1.EventTypeNormal, "Activated", "Activated bundle %q, since none was chosen", name)
	} else {
		v.Events.Eventf(v.object, corev1.EventTypeNormal, "Activated", "Activated bundle %q in place of %q, as the upgrade policy says", name, was)
	}
	activations.Inc()
	return nil
}

// wrote goes on with what was written. What is told of it in this reconcile is about what was there before, and the next one follows.
func (v *visit) wrote(written *packagesv1.PackageBundleController) {
	status := v.object.Status
	v.writes.Note(written)
	v.before = written
	v.object = written.DeepCopy()
	v.object.Status = status
}

// sync makes the namespace of the cluster's packages, what is in it, and copies of that on the cluster.
func (v *visit) sync(ctx context.Context, f facts) error {
	if err := v.makeNamespace(ctx); err != nil {
		return err
	}
	c := &f.credentials
	if c.local() == leave && c.plan.empty() {
		if f.held && nothingLeft(f) {
			return v.letGo(ctx)
		}
		return nil
	}
	if !f.held {
		return v.hold(ctx)
	}
	if err := v.makeLocal(ctx, c); err != nil {
		return err
	}
	if f.connected == nil || c.plan.empty() || c.after > 0 {
		return nil
	}
	work := &copying{through: f.connected, owner: f.name, plan: c.plan, sources: c.sources, now: v.Clock.Now}
	v.start(v.copies, f.cluster, work.do)
	return nil
}

func (v *visit) makeNamespace(ctx context.Context) error {
	name := packagesv1.NamespacePrefix + v.object.Name
	there, err := v.Secrets.Namespace(ctx, name)
	if there != nil || err != nil {
		return err
	}
	err = v.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsInvalid(err): // and always will be
		return reconcile.TerminalError(fmt.Errorf("making namespace %q: %w", name, err))
	}
	return fmt.Errorf("making namespace %q: %w", name, err)
}

// hold adds the finalizer before anything is made that must be taken back.
func (v *visit) hold(ctx context.Context) error {
	changed := v.object.DeepCopy()
	controllerutil.AddFinalizer(changed, packagesv1.ControllerFinalizer)
	return v.patchFinalizer(ctx, changed)
}

// nothingLeft says that all that was made is taken back, and nothing is to be made.
func nothingLeft(f facts) bool {
	c := &f.credentials
	return f.connected != nil && !c.unseen && c.failed == nil && c.mirror == nil && (c.made == nil || c.foreign) && len(c.wanted()) == 0
}

func (v *visit) letGo(ctx context.Context) error {
	changed := v.object.DeepCopy()
	controllerutil.RemoveFinalizer(changed, packagesv1.ControllerFinalizer)
	return v.patchFinalizer(ctx, changed)
}

func (v *visit) patchFinalizer(ctx context.Context, changed *packagesv1.PackageBundleController) error {
	base := v.object.DeepCopy()
	if err := v.Client.Patch(ctx, changed, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	v.wrote(changed)
	v.wake(v.key())
	return nil
}

// finish takes back what is here, and lets the object go.
func (v *visit) finish(ctx context.Context, f facts, c choice) error {
	if !f.held {
		return nil
	}
	f.credentials.mirror, f.credentials.invalid = nil, nil
	if err := v.makeLocal(ctx, &f.credentials); err != nil {
		return err
	}
	if err := v.letGo(ctx); err != nil {
		return err
	}
	if c.abandon != "" {
		v.Events.Eventf(v.object, corev1.EventTypeWarning, "Abandoned",
			"Credentials that were copied to Cluster %q are left there: %s", f.cluster, c.abandon)
		abandoned.Inc()
	}
	return nil
}
