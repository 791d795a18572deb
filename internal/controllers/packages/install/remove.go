package install

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// uninstall deletes the HelmReleaseProxy. The steps continue once it is gone, which is an event.
func (c *Controller) uninstall(ctx context.Context, s *scope) error {
	if !controllerutil.ContainsFinalizer(s.pack, packagesv1.PackageFinalizer) {
		return reconcile.Stop
	}
	s.deletingFor = c.memory.deletions.Of(c.Clock, s.Key(), s.pack.DeletionTimestamp.Time)
	if s.release == nil {
		return c.confirmGone(ctx, s)
	}
	if err := c.abandonRelease(ctx, s); err != nil {
		return err
	}
	if !s.release.DeletionTimestamp.IsZero() {
		return reconcile.Stop
	}
	err := c.Client.Delete(ctx, s.release.DeepCopy(), client.Preconditions{UID: &s.release.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting HelmReleaseProxy %q: %w", s.release.Name, err)
	}
	written.WithLabelValues("delete").Inc()
	return reconcile.Stop
}

// confirmGone reads the HelmReleaseProxy from the API server, because the cache may not contain a
// new one yet.
func (c *Controller) confirmGone(ctx context.Context, s *scope) error {
	existing := &addonsv1.HelmReleaseProxy{}
	gone, err := isMissing(ctx, c.Live, s.Key(), existing)
	if err != nil {
		return fmt.Errorf("reading HelmReleaseProxy %q: %w", s.Key(), err)
	}
	if gone || !metav1.IsControlledBy(existing, s.pack) {
		return nil
	}
	s.after = reconcile.ConflictRetry
	return reconcile.Stop
}

// abandonRelease makes the release controller give up on an unreachable cluster at once, if the
// user requested it.
func (c *Controller) abandonRelease(ctx context.Context, s *scope) error {
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
	if err := client.IgnoreNotFound(c.Client.Patch(ctx, after, client.MergeFrom(s.release))); err != nil {
		return fmt.Errorf("abandoning HelmReleaseProxy %q: %w", after.Name, err)
	}
	s.release = after
	return nil
}

// findAbandoned finds out whether the release controller has given up on the cluster. The release
// is gone, so the only evidence is the last condition, the time since the deletion, and the
// Cluster.
func (c *Controller) findAbandoned(ctx context.Context, s *scope) error {
	if alreadyAbandoned(s.pack) {
		s.abandoned = true
		return nil
	}
	if !mayBeAbandoned(s.pack, s.deletingFor) {
		return nil
	}
	t := s.pack.Status.Target
	key := client.ObjectKey{Namespace: t.ClusterNamespace, Name: t.Cluster}
	gone, err := isMissing(ctx, c.Live, key, &clusterv1.Cluster{})
	if err != nil {
		return fmt.Errorf("reading Cluster %q: %w", key, err)
	}
	s.abandoned = !gone
	return nil
}

// alreadyAbandoned reports whether an earlier reconcile recorded that the release was abandoned.
func alreadyAbandoned(p *packagesv1.Package) bool {
	last := meta.FindStatusCondition(p.Status.Conditions, packagesv1.Installed)
	return last != nil && last.Reason == packagesv1.AbandonedReason && p.Status.Target != nil
}

// mayBeAbandoned reports whether the cluster was unreachable until the release controller gave up,
// at once if the user requested it. A Cluster that was deleted looks the same.
func mayBeAbandoned(p *packagesv1.Package, deletingFor time.Duration) bool {
	last := meta.FindStatusCondition(p.Status.Conditions, packagesv1.Installed)
	if last == nil || last.Status != metav1.ConditionUnknown || p.Status.Target == nil {
		return false
	}
	return p.Annotations[packagesv1.AbandonAnnotation] == "true" || deletingFor >= giveUpAfter
}

// removeFinalizer removes the finalizer, after the status says whether the release was abandoned.
func (c *Controller) removeFinalizer(ctx context.Context, s *scope) error {
	if s.abandoned {
		reportAbandoned(s.pack)
		if err := client.IgnoreNotFound(s.Save(ctx)); err != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(s.pack, packagesv1.PackageFinalizer)
	if err := client.IgnoreNotFound(s.Save(ctx)); err != nil {
		return err
	}
	c.memory.forget(s.Key())
	c.recordRemoval(&s.facts)
	return reconcile.Stop
}
