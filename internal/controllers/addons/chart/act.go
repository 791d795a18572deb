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

// act makes the moves that the plan allows.
func (c *Controller) act(ctx context.Context, s *scope) error {
	return each(s, func(t *target) {
		m := s.allowed(t)
		if err := c.make(ctx, s, t, m); err != nil {
			s.note(problem{t.cluster.Name, addonsv1.CreationFailedReason, err, m.Verb == plan.Reject})
			s.drop(t)
		}
	})
}

// allowed is the move that is made now.
func (s *scope) allowed(t *target) plan.Change {
	if s.plan.Allowed[t.cluster.Name] {
		return t.move
	}
	if t.move.Verb != plan.Keep || s.plan.Back {
		s.waits(t)
	}
	if t.back.Verb != "" && (s.plan.Back || t.release == nil) {
		return t.back
	}
	return plan.Change{Verb: plan.Keep}
}

// waits records a cluster that does not have what the spec says, on purpose.
func (f *facts) waits(t *target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = append(f.waiting, t.cluster.Name)
}

func (f *facts) reinstalls(t *target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reinstalling = append(f.reinstalling, t.cluster.Name)
}

func (c *Controller) make(ctx context.Context, s *scope, t *target, m plan.Change) error {
	switch m.Verb {
	case plan.Create:
		return c.create(ctx, s, t, m.Object)
	case plan.Update:
		return c.update(ctx, s, t, m.Object)
	case plan.Recreate:
		if err := c.delete(ctx, s, t.release, reinstallingReason); err != nil {
			return err
		}
		s.reinstalls(t)
	case plan.Await:
		s.reinstalls(t)
	case plan.Reject:
		return m.Err
	}
	if t.release != nil {
		s.leaves(t.release)
	}
	return nil
}

func (c *Controller) create(ctx context.Context, s *scope, t *target, object *addonsv1.HelmReleaseProxy) error {
	err := c.Client.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return c.adopt(ctx, s, object)
	}
	if err != nil {
		return fmt.Errorf("creating HelmReleaseProxy %q: %w", object.Name, err)
	}
	s.leaves(object)
	written.WithLabelValues(string(plan.Create)).Inc()
	logger(ctx).Info("Created a release", "release", object.Name, "cluster", t.cluster.Name)
	s.did(createdReason, t.cluster.Name)
	return nil
}

// adopt looks at what has the name already: most likely it is the release of a reconcile that the cache does not know about yet.
func (c *Controller) adopt(ctx context.Context, s *scope, object *addonsv1.HelmReleaseProxy) error {
	there := &addonsv1.HelmReleaseProxy{}
	if err := c.Live.Get(ctx, ctrlclient.ObjectKeyFromObject(object), there); err != nil {
		return fmt.Errorf("reading HelmReleaseProxy %q: %w", object.Name, err)
	}
	if !metav1.IsControlledBy(there, s.chart) {
		return fmt.Errorf("creating HelmReleaseProxy %q: a HelmReleaseProxy with that name and another owner exists; delete it", object.Name)
	}
	s.leaves(there)
	return nil
}

func (c *Controller) update(ctx context.Context, s *scope, t *target, object *addonsv1.HelmReleaseProxy) error {
	if err := c.Client.Patch(ctx, object, ctrlclient.MergeFrom(t.release)); err != nil {
		return fmt.Errorf("updating HelmReleaseProxy %q: %w", object.Name, err)
	}
	s.leaves(object)
	written.WithLabelValues(string(plan.Update)).Inc()
	logger(ctx).Info("Updated a release", "release", object.Name, "cluster", t.cluster.Name)
	if object.Generation != t.release.Generation {
		s.did(updatedReason, t.cluster.Name)
	}
	return nil
}

// delete removes a release, which is told once: when it is on its way out already, nothing happens.
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
	s.did(reason, r.Spec.ClusterRef.Name)
	return nil
}

var logger = ctrl.LoggerFrom
