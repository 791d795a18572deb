package fleet

import (
	"context"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/removal"
)

// applyCluster decides about one cluster and acts.
func (c *Controller) applyCluster(ctx context.Context, s *scope, one *candidate) error {
	switch do := decide(s.facts(one)); do {
	case apply:
		return c.ensure(ctx, s, one)
	case withdraw:
		if err := c.withdrawConfirmation(ctx, one.cluster); err != nil {
			return err
		}
		return c.ensure(ctx, s, one)
	case waitForConfirmation:
		c.announce(s, one.cluster, unconfirmedReason, removal.Message(one.cluster))
		for key, report := range s.reports {
			if key.Namespace == one.key.Namespace {
				report.Unconfirmed = append(report.Unconfirmed, one.key.Name)
			}
		}
		return c.followArchive(ctx, s, one)
	case remove:
		ctrl.LoggerFrom(ctx).Info("Removing a cluster that was removed from Git", "cluster", one.key)
		return c.release(ctx, one.all, kustomizev1.DeletionPolicyDelete)
	case forget:
		ctrl.LoggerFrom(ctx).Info("Forgetting a cluster whose namespace isn't connected", "cluster", one.key)
		return c.release(ctx, one.all, kustomizev1.DeletionPolicyOrphan)
	default:
		return c.followArchive(ctx, s, one)
	}
}

// withdrawConfirmation removes the confirmation of a removal that no longer applies: the next one
// may be a mistake. A Cluster that has changed since it was read is left to the next reconcile,
// because somebody may have confirmed another removal.
func (c *Controller) withdrawConfirmation(ctx context.Context, cluster *anywherev1.Cluster) error {
	was := cluster.DeepCopy()
	delete(cluster.Annotations, anywherev1.GitRemovalAnnotation)
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	if err := c.Client.Patch(ctx, cluster, patch, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("withdrawing the confirmed removal: %w", err)
	}
	c.Events.Event(cluster, corev1.EventTypeNormal, withdrawnReason, "The confirmed removal is withdrawn, because Git has the files of the cluster again")
	return nil
}

// ensure creates or updates the Kustomizations of a cluster, and removes those of directories that
// it no longer has.
func (c *Controller) ensure(ctx context.Context, s *scope, one *candidate) error {
	p := s.place(one)
	if err := c.ensureAccount(ctx, s, p.grantOf()); err != nil {
		return err
	}
	if p.external {
		ours, err := c.ensureExternalArtifact(ctx, s, p)
		if err != nil || !ours {
			return err
		}
	}
	wanted := p.kustomizations()
	for _, want := range wanted {
		if err := c.ensureKustomization(ctx, s, one, want); err != nil {
			return err
		}
	}
	stale := slices.DeleteFunc(slices.Clone(one.all), func(k kustomizev1.Kustomization) bool {
		return slices.ContainsFunc(wanted, func(want *kustomizev1.Kustomization) bool {
			return client.ObjectKeyFromObject(want) == client.ObjectKeyFromObject(&k)
		})
	})
	return c.releaseStale(ctx, stale)
}

// place returns where the Kustomizations of a cluster are. Only a Cluster that exists and manages
// itself is a management cluster: a spec alone must not gain the privileges of an administrator.
func (s *scope) place(one *candidate) placement {
	p := placement{source: client.ObjectKeyFromObject(s.repository), entry: *one.entry, namespace: one.key.Namespace, external: s.external}
	if one.entry.selfManaged && one.cluster != nil && one.cluster.IsSelfManaged() {
		p.namespace = s.repository.Namespace
	}
	return p
}

func (c *Controller) ensureKustomization(ctx context.Context, s *scope, one *candidate, want *kustomizev1.Kustomization) error {
	key := client.ObjectKeyFromObject(want)
	is := &kustomizev1.Kustomization{}
	err := c.Client.Get(ctx, key, is)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading Kustomization %q: %w", key, err)
	case !is.DeletionTimestamp.IsZero():
		return nil // Its deletion is an event.
	case is.Labels[ManagedByLabel] != ManagedBy || SourceOf(is) != client.ObjectKeyFromObject(s.repository):
		s.problem(one.key.Namespace, fmt.Sprintf("Kustomization %q: %v", key, errUnowned))
		return nil
	case isCurrent(is, want):
		return nil
	}
	return Apply(ctx, c.Client, want)
}

// releaseStale deletes Kustomizations that a cluster doesn't need any more. What a directory had is
// deleted with it. The Kustomization of the cluster itself is stale if it is in another namespace
// than it should be, and the cluster stays.
func (c *Controller) releaseStale(ctx context.Context, stale []kustomizev1.Kustomization) error {
	for i := range stale {
		policy := kustomizev1.DeletionPolicyDelete
		if isOwn(&stale[i]) {
			policy = kustomizev1.DeletionPolicyOrphan
		}
		if err := c.release(ctx, stale[i:i+1], policy); err != nil {
			return err
		}
	}
	return nil
}

// release deletes Kustomizations after it has determined what becomes of the objects that they have
// applied. Flux acts on the policy that an object had when it was deleted.
func (c *Controller) release(ctx context.Context, all []kustomizev1.Kustomization, policy string) error {
	for i := range all {
		k := &all[i]
		if !k.DeletionTimestamp.IsZero() {
			continue
		}
		if k.Spec.DeletionPolicy != policy {
			patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"deletionPolicy":%q}}`, k.UID, policy)
			if err := c.Client.Patch(ctx, k, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldOwner)); err != nil {
				return client.IgnoreNotFound(err)
			}
		}
		if err := client.IgnoreNotFound(c.Client.Delete(ctx, k, client.Preconditions{UID: &k.UID})); err != nil {
			return fmt.Errorf("deleting Kustomization %q: %w", client.ObjectKeyFromObject(k), err)
		}
	}
	return nil
}
