// Package visit is how a reconcile of the provider begins, goes on and ends, for clusters and machines alike: the object is read, its owners
// are looked up, a paused one is left alone, a finalizer is put on before anything is made elsewhere; then steps are taken one after the
// other, and what they found is written in one patch.
//
// It knows no kind and decides nothing about one. Start with Opening.Open, then Walk and Visit.Close.
package visit

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"

	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
)

// Object is of a kind that the provider reconciles.
type Object interface {
	ctrlclient.Object
	conditions.Setter
}

// Opening is what has to be known before the first step.
type Opening struct {
	// Client reads from the manager's cache.
	Client ctrlclient.Client
	// Finalizer stays on the object until nothing of it is left elsewhere.
	Finalizer string
	// Conditions are those that nobody else writes.
	Conditions []string
	// Owners looks up what the object belongs to, once it is read.
	Owners func(ctx context.Context) (Owners, error)
}

// Owners are what an object belongs to.
type Owners struct {
	// Cluster is nil if it is gone, or not known.
	Cluster *clusterv1.Cluster
	// Missing says that Cluster API has not made itself the owner yet. That it does is an event.
	Missing bool
}

// Visit is one reconcile of one object.
type Visit struct {
	opening Opening
	object  Object
	patch   *patch.Helper
}

// Open reads the object. It returns nil if there is nothing to do, or not yet.
func (o Opening) Open(ctx context.Context, key ctrlclient.ObjectKey, object Object) (*Visit, error) {
	if err := o.Client.Get(ctx, key, object); err != nil {
		return nil, ctrlclient.IgnoreNotFound(err)
	}
	v := &Visit{opening: o, object: object}
	owners, err := o.Owners(ctx)
	if err != nil || owners.Missing && !v.Deleting() {
		return nil, err
	}
	if isPaused, requeue, err := paused.EnsurePausedCondition(ctx, o.Client, owners.Cluster, object); err != nil || isPaused || requeue {
		return nil, err
	}
	if added, err := finalizers.EnsureFinalizer(ctx, o.Client, object, o.Finalizer); err != nil || added {
		return nil, err
	}
	v.patch, err = patch.NewHelper(object, o.Client)
	return v, err
}

// Deleting says that the object is on its way out.
func (v *Visit) Deleting() bool { return !v.object.GetDeletionTimestamp().IsZero() }

// Flush writes what is known so far, for a step that must not go on before that is safe.
func (v *Visit) Flush(ctx context.Context) error {
	if err := v.write(ctx); err != nil {
		return err
	}
	var err error
	v.patch, err = patch.NewHelper(v.object, v.opening.Client)
	return err
}

// Close writes the object and says when to look again, unless something went wrong that only a retry can mend.
func (v *Visit) Close(ctx context.Context, next time.Duration, err error) (ctrl.Result, error) {
	writeErr := v.write(ctx)
	if v.Deleting() {
		writeErr = kerrors.FilterOut(writeErr, apierrors.IsNotFound)
	}
	errs := slices.DeleteFunc([]error{err, writeErr}, func(e error) bool { return e == nil })
	if err := kerrors.NewAggregate(errs); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

func (v *Visit) write(ctx context.Context) error {
	return v.patch.Patch(ctx, v.object, patch.WithOwnedConditions{Conditions: v.opening.Conditions})
}

// Step is one part of a reconcile. It ends in done (nil, nil), wait, or error.
type Step[S any] struct {
	// Doing completes the sentence "… failed", for people.
	Doing string
	Run   func(context.Context, S) (*outcome.Wait, error)
}

// Walk takes the steps until one has to wait or fails. Failures of the Packet API become waits.
func Walk[S any](ctx context.Context, s S, steps []Step[S]) (*outcome.Wait, error) {
	for _, step := range steps {
		wait, err := step.Run(ctx, s)
		if err != nil {
			if wait = outcome.Of(step.Doing, err); wait == nil {
				return nil, err
			}
			ctrl.LoggerFrom(ctx).V(2).Info("Packet API did not do as asked", "step", step.Doing, "error", err.Error())
		}
		if wait != nil {
			return wait, nil
		}
	}
	return nil, nil
}
