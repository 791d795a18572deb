package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/model/owner"
)

// foreignError means that an object with the required name does not belong to the Cluster.
type foreignError struct {
	what string
	// former means that it belongs to a deleted Cluster of the same name and namespace.
	former bool
}

// Error never names the owner, who may be another tenant.
func (e *foreignError) Error() string {
	if e.former {
		return fmt.Sprintf("%s in namespace %s belongs to a deleted cluster of the same name; ask an administrator to delete it, or choose another name", e.what, anywherev1.SystemNamespace)
	}
	return fmt.Sprintf("%s already exists in namespace %s and does not belong to this cluster; choose another name", e.what, anywherev1.SystemNamespace)
}

// apply applies the objects that differ from what is wanted.
func (c *Controller) apply(ctx context.Context, s *scope) error {
	for _, wanted := range s.wanted.All() {
		err := c.applyOne(ctx, s, wanted)
		var foreign *foreignError
		switch {
		case errors.As(err, &foreign):
			return fail(anywherev1.ClusterInvalidReason, "%s", foreign.Error())
		case apierrors.IsInvalid(err) || rejected(err):
			return &rejectedError{err}
		case err != nil:
			return err
		}
	}
	return nil
}

// rejected reports whether a webhook rejected an object.
func rejected(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) }

func (c *Controller) applyOne(ctx context.Context, s *scope, wanted client.Object) error {
	owner.Mark(s.cluster, wanted)
	applied, err := intent(wanted, c.Client.Scheme())
	if err != nil {
		return err
	}
	if secret, ok := wanted.(*corev1.Secret); ok {
		return c.applySecret(ctx, s, secret, applied)
	}
	there := s.live.find(wanted)
	if there == nil {
		return c.create(ctx, s, wanted, applied)
	}
	if !owner.Owns(s.cluster, there) {
		return foreign(s.cluster, there, applied.GetKind())
	}
	if !there.GetDeletionTimestamp().IsZero() {
		return nil // It is created again once it is deleted.
	}
	changed, err := differs(applied, there)
	if err != nil || !changed {
		return err
	}
	return c.write(ctx, s, wanted, applied)
}

func foreign(c *anywherev1.Cluster, o client.Object, kind string) error {
	return &foreignError{fmt.Sprintf("%s %q", kind, o.GetName()), owner.Labeled(c, o)}
}

// create asks the API server first, because the cache may lag behind, and lists by label do not
// contain foreign objects.
func (c *Controller) create(ctx context.Context, s *scope, wanted client.Object, applied *unstructured.Unstructured) error {
	there, err := c.Client.Scheme().New(applied.GroupVersionKind())
	if err != nil {
		return err
	}
	object, ok := there.(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", there)
	}
	err = c.Live.Get(ctx, client.ObjectKeyFromObject(wanted), object)
	switch {
	case apierrors.IsNotFound(err):
		return c.write(ctx, s, wanted, applied)
	case err != nil:
		return fmt.Errorf("reading %s %q: %w", applied.GetKind(), wanted.GetName(), err)
	case !owner.Owns(s.cluster, object):
		return foreign(s.cluster, object, applied.GetKind())
	case isTemplate(wanted) && object.GetAnnotations()[build.ContentAnnotation] != wanted.GetAnnotations()[build.ContentAnnotation]:
		// The cache did not contain it when the number was chosen.
		return apierrors.NewAlreadyExists(schema.GroupResource{Group: applied.GroupVersionKind().Group, Resource: applied.GetKind()}, wanted.GetName())
	}
	changed, err := differs(applied, object)
	if err != nil || !changed {
		return err
	}
	return c.write(ctx, s, wanted, applied)
}

func isTemplate(o client.Object) bool {
	switch o.(type) {
	case *infrav1.PacketMachineTemplate, *bootstrapv1.KubeadmConfigTemplate:
		return true
	default:
		return false
	}
}

// applySecret reads from the API server, because these few Secrets are not cached.
func (c *Controller) applySecret(ctx context.Context, s *scope, wanted *corev1.Secret, applied *unstructured.Unstructured) error {
	there := &corev1.Secret{}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	if err == nil {
		if !owner.Owns(s.cluster, there) {
			return foreign(s.cluster, there, "Secret")
		}
		if changed, err := differs(applied, there); err != nil || !changed {
			return err
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %q: %w", wanted.Name, err)
	}
	return c.write(ctx, s, wanted, applied)
}

// write applies an object and keeps the response of the API server.
func (c *Controller) write(ctx context.Context, s *scope, wanted client.Object, applied *unstructured.Unstructured) error {
	kind, name := applied.GetKind(), applied.GetName()
	verb := createdReason
	if s.live.find(wanted) != nil {
		verb = changedReason
	}
	err := c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s %q: %w", kind, name, err)
	}
	answer, ok := wanted.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", wanted)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(applied.Object, answer); err != nil {
		return fmt.Errorf("reading %s %q: %w", kind, name, err)
	}
	s.live.replace(answer)
	ctrl.LoggerFrom(ctx).Info("Applied", "kind", kind, "name", name)
	c.event(s, verb, kind, name)
	return nil
}
