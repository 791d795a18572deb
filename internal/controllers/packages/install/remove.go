package install

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/fresh"
)

// uninstall deletes the HelmReleaseProxy and waits until it is gone, which is an event.
func (c *Controller) uninstall(ctx context.Context, s *scope) (bool, error) {
	if !controllerutil.ContainsFinalizer(s.pack, packagesv1.PackageFinalizer) {
		return false, nil
	}
	if s.release == nil {
		return c.confirm(ctx, s)
	}
	if err := c.abandon(ctx, s); err != nil {
		return false, err
	}
	if !s.release.DeletionTimestamp.IsZero() {
		return false, nil
	}
	err := c.Client.Delete(ctx, s.release.DeepCopy(), client.Preconditions{UID: &s.release.UID})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("deleting HelmReleaseProxy %q: %w", s.release.Name, err)
	}
	written.WithLabelValues("delete").Inc()
	return false, nil
}

// confirm asks the API server whether the HelmReleaseProxy is gone: the cache may not know yet of one that was just made.
func (c *Controller) confirm(ctx context.Context, s *scope) (bool, error) {
	there := &addonsv1.HelmReleaseProxy{}
	gone, err := noSuch(ctx, c.Live, s.key(), there)
	if err != nil {
		return false, fmt.Errorf("reading HelmReleaseProxy %q: %w", s.key(), err)
	}
	if gone || !metav1.IsControlledBy(there, s.pack) {
		return true, nil
	}
	s.after = fresh.Retry
	return false, nil
}

// abandon makes the release controller give up on a cluster that does not answer.
func (c *Controller) abandon(ctx context.Context, s *scope) error {
	if s.pack.Annotations[packagesv1.AbandonAnnotation] != "true" {
		return nil
	}
	after := s.release.DeepCopy()
	if after.Spec.Options.Uninstall == nil {
		after.Spec.Options.Uninstall = &addonsv1.HelmUninstallOptions{}
	}
	if now := after.Spec.Options.Uninstall.GiveUpAfter; now != nil && now.Duration == atOnce {
		return nil
	}
	after.Spec.Options.Uninstall.GiveUpAfter = &metav1.Duration{Duration: atOnce}
	err := c.Client.Patch(ctx, after, client.MergeFrom(s.release))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("giving up HelmReleaseProxy %q: %w", after.Name, err)
	}
	if err == nil {
		c.releases.Note(after)
	}
	s.release = after
	return nil
}

// finish lets the Package go, and records what became of what was on the cluster.
func (c *Controller) finish(ctx context.Context, s *scope) (bool, error) {
	given, err := c.giveUp(ctx, s)
	if err != nil {
		return false, err
	}
	before := s.pack.DeepCopy()
	controllerutil.RemoveFinalizer(s.pack, packagesv1.PackageFinalizer)
	err = c.Client.Patch(ctx, s.pack, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("letting go of Package %q: %w", s.key(), err)
	}
	c.forget(s.key())
	t := s.pack.Status.Target
	switch {
	case t == nil:
		c.Events.Event(s.pack, corev1.EventTypeNormal, uninstalledReason, "Nothing was installed")
	case given:
		c.Events.Eventf(s.pack, corev1.EventTypeWarning, abandonedReason,
			"Gave up on release %q in namespace %q: Cluster %q did not answer", t.Release, t.Namespace, t.Cluster)
	default:
		c.Events.Eventf(s.pack, corev1.EventTypeNormal, uninstalledReason, "Release %q is gone from Cluster %q, or the Cluster is", t.Release, t.Cluster)
	}
	return false, nil
}

// giveUp says whether the release controller has given up on a cluster, and records it. All that is left to tell it by is the last that was
// heard of the cluster, and the time.
func (c *Controller) giveUp(ctx context.Context, s *scope) (bool, error) {
	last := meta.FindStatusCondition(s.pack.Status.Conditions, packagesv1.Installed)
	asked := s.pack.Annotations[packagesv1.AbandonAnnotation] == "true"
	switch {
	case last == nil, s.pack.Status.Target == nil:
		return false, nil
	case last.Reason == packagesv1.AbandonedReason:
		return true, nil
	case last.Status != metav1.ConditionUnknown || !asked && c.Clock.Since(s.pack.DeletionTimestamp.Time) < giveUpAfter:
		return false, nil
	}
	t := s.pack.Status.Target
	gone, err := noSuch(ctx, c.Live, client.ObjectKey{Namespace: t.ClusterNamespace, Name: t.Cluster}, &clusterv1.Cluster{})
	if gone || err != nil {
		return false, err
	}
	meta.SetStatusCondition(&s.pack.Status.Conditions, metav1.Condition{
		Type: packagesv1.Installed, Status: metav1.ConditionFalse, Reason: packagesv1.AbandonedReason, ObservedGeneration: s.pack.Generation,
		Message: fmt.Sprintf("Cluster %q did not answer; what release %q left on it was given up", t.Cluster, t.Release),
	})
	err = c.Client.Status().Update(ctx, s.pack)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("recording that Package %q is given up: %w", s.key(), err)
	}
	return true, nil
}
