package chart

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/plan"
)

// applyAll makes the changes that the rollout allows.
func (c *Controller) applyAll(ctx context.Context, s *scope) error {
	return forEach(s, func(t *target) {
		m := s.allowed(t)
		if err := c.apply(ctx, s, t, m); err != nil {
			s.addProblem(problem{t.cluster.Name, addonsv1.CreationFailedReason, err, m.Verb == plan.Reject})
			s.exclude(t)
		}
	})
}

// allowed returns the change that may be made now.
func (s *scope) allowed(t *target) plan.Change {
	if s.plan.Allowed[t.cluster.Name] {
		return t.change
	}
	if t.change.Verb != plan.Keep || s.plan.Back {
		s.addWaiting(t)
	}
	if t.rollback.Verb != "" && (s.plan.Back || t.release == nil) {
		return t.rollback
	}
	return plan.Change{Verb: plan.Keep}
}

// apply makes one change.
func (c *Controller) apply(ctx context.Context, s *scope, t *target, m plan.Change) error {
	switch m.Verb {
	case plan.Create:
		return c.create(ctx, s, t, m.Object)
	case plan.Update:
		return c.update(ctx, s, t, m.Object)
	case plan.Recreate:
		if err := c.delete(ctx, s, t.release, reinstallingReason); err != nil {
			return err
		}
		s.addReinstalling(t)
	case plan.Await:
		s.addReinstalling(t)
	case plan.Reject:
		return m.Err
	}
	if t.release != nil {
		s.addAfter(t.release)
	}
	return nil
}

func (c *Controller) create(ctx context.Context, s *scope, t *target, object *addonsv1.HelmReleaseProxy) error {
	err := c.Client.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return c.adoptExisting(ctx, s, object)
	}
	if err != nil {
		return fmt.Errorf("creating HelmReleaseProxy %q: %w", object.Name, err)
	}
	s.addAfter(object)
	written.WithLabelValues(string(plan.Create)).Inc()
	logger(ctx).Info("Created a release", "release", object.Name, "cluster", t.cluster.Name)
	s.addDone(createdReason, t.cluster.Name)
	return nil
}

// adoptExisting handles a name that is taken, usually by a release that the cache has not seen yet.
func (c *Controller) adoptExisting(ctx context.Context, s *scope, object *addonsv1.HelmReleaseProxy) error {
	existing := &addonsv1.HelmReleaseProxy{}
	if err := c.Live.Get(ctx, ctrlclient.ObjectKeyFromObject(object), existing); err != nil {
		return fmt.Errorf("reading HelmReleaseProxy %q: %w", object.Name, err)
	}
	if !metav1.IsControlledBy(existing, s.chart) {
		return fmt.Errorf("creating HelmReleaseProxy %q: a HelmReleaseProxy with that name and another owner exists; delete it", object.Name)
	}
	s.addAfter(existing)
	return nil
}

func (c *Controller) update(ctx context.Context, s *scope, t *target, object *addonsv1.HelmReleaseProxy) error {
	if err := c.Client.Patch(ctx, object, ctrlclient.MergeFrom(t.release)); err != nil {
		return fmt.Errorf("updating HelmReleaseProxy %q: %w", object.Name, err)
	}
	s.addAfter(object)
	written.WithLabelValues(string(plan.Update)).Inc()
	logger(ctx).Info("Updated a release", "release", object.Name, "cluster", t.cluster.Name)
	if object.Generation != t.release.Generation {
		s.addDone(updatedReason, t.cluster.Name)
	}
	return nil
}

// delete deletes a release, unless it is being deleted already.
func (c *Controller) delete(ctx context.Context, s *scope, r *addonsv1.HelmReleaseProxy, reason string) error {
	if !r.DeletionTimestamp.IsZero() {
		return nil
	}
	err := c.Client.Delete(ctx, r.DeepCopy(), ctrlclient.Preconditions{UID: &r.UID})
	if ctrlclient.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting HelmReleaseProxy %q: %w", r.Name, err)
	}
	written.WithLabelValues("delete").Inc()
	logger(ctx).Info("Deleted a release", "release", r.Name, "cluster", r.Spec.ClusterRef.Name, "reason", reason)
	s.addDone(reason, r.Spec.ClusterRef.Name)
	return nil
}

var logger = ctrl.LoggerFrom
