package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/atrest"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/controllers/clusters/encryption"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/model/spec"
)

// encrypt decides how API servers encrypt Secrets. If nothing changes, it makes no request.
func (c *Controller) encrypt(ctx context.Context, s *scope) error {
	facts, err := c.encryptionFacts(ctx, s)
	if err != nil {
		return err
	}
	state, data, err := c.encryptionState(ctx, s)
	if err != nil {
		return err
	}
	secret, used := encryption.Reference(s.live.controlPlane)
	next, err := encryption.Next(state, facts)
	_, byHand := facts.Cluster.Spec.ControlPlaneConfiguration.APIServerExtraArgs[spec.EncryptionArgument]
	switch {
	case err != nil:
		return unusable(err)
	case state != nil && byHand:
		return fail(anywherev1.ClusterInvalidReason, "Argument %s can't be set by hand: Secrets are encrypted with the keys in Secret %q; remove it from spec.controlPlaneConfiguration.apiServerExtraArgs", spec.EncryptionArgument, encryptionName(s))
	case next != state, state != nil && (state.Older(used) || !state.Complete(data, facts.Cluster)), state == nil && secret == encryptionName(s):
		if state, err = c.advanceEncryption(ctx, s, facts); err != nil {
			return err
		}
	}
	if s.encryption = state; state != nil {
		s.input.Encryption = state.Source(s.config.Cluster)
	}
	return nil
}

func encryptionName(s *scope) string { return anywherev1.EncryptionSecret(s.cluster.Name) }

// encryptionState returns the state and the data of the cluster's Secret, which may be outdated, or
// nil without one.
func (c *Controller) encryptionState(ctx context.Context, s *scope) (*encryption.State, map[string][]byte, error) {
	data, err := c.Secrets.Data(ctx, "Secret", encryption.Key(s.cluster.Name))
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading Secret %q: %w", encryptionName(s), err)
	}
	state, err := encryption.Decode(data)
	if err != nil {
		return nil, nil, damaged(s, err)
	}
	return state, data, nil
}

func damaged(s *scope, err error) error {
	return fail(anywherev1.ClusterInvalidReason, "Secret %q with the encryption keys can't be used: %s; restore it from a backup", encryptionName(s), err.Error())
}

// outdated returns the outcome of a Secret that lacks keys which are in use. Machines that were
// created from it could not read what the current ones wrote, and would replace them.
func outdated(s *scope, used string) error {
	return fail(anywherev1.ClusterInvalidReason,
		"Secret %q with the encryption keys is older than the configuration %s of the control plane; restore it from a backup that was made after the last change of keys (control plane machines have the keys in %s)",
		encryptionName(s), used, encryption.File)
}

// unusable returns the outcome of a spec from which no configuration can be made.
func unusable(err error) error {
	return fail(anywherev1.ClusterInvalidReason, "Field spec.etcdEncryption can't be used: %s; correct it, or encrypt Secrets with a key of the cluster first", err.Error())
}

// encryptionFacts gathers what the next state depends on.
func (c *Controller) encryptionFacts(ctx context.Context, s *scope) (encryption.Facts, error) {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := c.Metadata.Get(ctx, encryption.Key(s.cluster.Name), meta)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return encryption.Facts{}, fmt.Errorf("reading the metadata of Secret %q: %w", encryptionName(s), err)
	case err == nil && !owner.Owns(s.cluster, meta):
		return encryption.Facts{}, fail(anywherev1.ClusterInvalidReason, "%s", foreign(s.cluster, meta, "Secret").Error())
	}
	s.encryptionProblem = meta.Annotations[anywherev1.EncryptionProblemAnnotation]
	return encryption.Facts{
		Cluster: s.config.Cluster, ControlPlane: s.live.controlPlane, Version: s.version, RolledOut: s.rolledOut(s.version),
		Rotation: meta.Annotations[anywherev1.EncryptionRotateAnnotation],
		NewKey:   func() (apiserverv1.Key, error) { return atrest.NewKey(c.Clock.Now()) },
	}, nil
}

// rolledOut reports whether all control plane machines, those being deleted included, match the
// control plane.
func (s *scope) rolledOut(version string) bool {
	k := s.live.controlPlane
	if k == nil || k.Spec.Version != version || controlPlaneReady(facts{cluster: s.cluster, controlPlane: k, etcd: s.live.etcd}).status != metav1.ConditionTrue {
		return false
	}
	return len(facts{machines: s.live.machines}.controlPlaneMachines()) == int(ptr.Deref(k.Spec.Replicas, 1))
}

// advanceEncryption computes the next state from the live Secret and stores it. A concurrent change
// is a conflict, so that no key is lost.
func (c *Controller) advanceEncryption(ctx context.Context, s *scope, facts encryption.Facts) (*encryption.State, error) {
	secret := &corev1.Secret{}
	err := c.Live.Get(ctx, encryption.Key(s.cluster.Name), secret)
	if apierrors.IsNotFound(err) {
		return c.beginEncryption(ctx, s, facts)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %q: %w", encryptionName(s), err)
	}
	if !owner.Owns(s.cluster, secret) {
		return nil, fail(anywherev1.ClusterInvalidReason, "%s", foreign(s.cluster, secret, "Secret").Error())
	}
	state, err := encryption.Decode(secret.Data)
	if err != nil {
		return nil, damaged(s, err)
	}
	_, used := encryption.Reference(s.live.controlPlane)
	if state.Older(used) {
		return nil, outdated(s, used)
	}
	facts.Rotation = secret.Annotations[anywherev1.EncryptionRotateAnnotation]
	next, err := encryption.Next(state, facts)
	if err != nil || next == state && state.Complete(secret.Data, facts.Cluster) {
		return state, err
	}
	if err := next.Encode(secret, facts.Cluster, used); err != nil {
		return nil, unusable(err)
	}
	if err := c.Client.Update(ctx, secret, client.FieldOwner(FieldManager)); err != nil {
		return nil, fmt.Errorf("writing Secret %q: %w", secret.Name, err)
	}
	c.event(s, changedReason, "Secret", secret.Name)
	return next, nil
}

// beginEncryption creates the Secret of a cluster that has none. A control plane that refers to a
// missing Secret never gets new keys: it could read nothing with them.
func (c *Controller) beginEncryption(ctx context.Context, s *scope, facts encryption.Facts) (*encryption.State, error) {
	if secret, _ := encryption.Reference(s.live.controlPlane); secret == encryptionName(s) {
		return nil, fail(anywherev1.MissingDependentObjectsReason,
			"Secret %q with the encryption keys of the cluster not found in namespace %q; restore it from a backup", secret, anywherev1.SystemNamespace)
	}
	if s.live.controlPlane == nil {
		if err := c.confirmNew(ctx, s); err != nil {
			return nil, err
		}
	}
	next, err := encryption.Next(nil, facts)
	if err != nil || next == nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: build.Meta(s.cluster, encryptionName(s))}
	owner.Mark(s.cluster, secret)
	if err := next.Encode(secret, facts.Cluster, ""); err != nil {
		return nil, unusable(err)
	}
	if err := c.Client.Create(ctx, secret, client.FieldOwner(FieldManager)); err != nil {
		return nil, fmt.Errorf("creating Secret %q: %w", secret.Name, err)
	}
	c.event(s, createdReason, "Secret", secret.Name)
	return next, nil
}

// confirmNew asks the API server whether the control plane exists, because the cache may lag
// behind.
func (c *Controller) confirmNew(ctx context.Context, s *scope) error {
	there := &controlplanev1.KubeadmControlPlane{}
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: s.cluster.Name}, there)
	if err == nil {
		return apierrors.NewAlreadyExists(controlplanev1.GroupVersion.WithResource("kubeadmcontrolplanes").GroupResource(), s.cluster.Name)
	}
	return client.IgnoreNotFound(err)
}
