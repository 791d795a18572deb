package inspect

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// NotInitializedError means that a cluster has no API server yet.
type NotInitializedError struct{ Cluster, Waiting string }

func (e *NotInitializedError) Error() string {
	return fmt.Sprintf("cluster %q has no API server yet: %s", e.Cluster, e.Waiting)
}

// Kubeconfig is the way into a cluster. Who made the cluster may read the copy beside it, and nothing else of what it consists of; who runs the
// fleet reads what the copy is made from.
func (p *Plane) Kubeconfig(ctx context.Context, c *anywherev1.Cluster) ([]byte, error) {
	data, err := p.kubeconfigIn(ctx, c.Namespace, c.Name)
	if err == nil || c.Namespace == anywherev1.SystemNamespace || !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return data, err
	}
	if data, here := p.kubeconfigIn(ctx, anywherev1.SystemNamespace, c.Name); here == nil {
		return data, nil
	}
	return nil, err
}

func (p *Plane) kubeconfigIn(ctx context.Context, namespace, cluster string) ([]byte, error) {
	key := client.ObjectKey{Namespace: namespace, Name: secret.Name(cluster, secret.Kubeconfig)}
	kept := &corev1.Secret{}
	if err := p.Client.Get(ctx, key, kept); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %q: %w", cluster, err)
	}
	data := kept.Data[secret.KubeconfigDataName]
	if len(data) == 0 {
		return nil, fmt.Errorf("the Secret %q has no key %q", key, secret.KubeconfigDataName)
	}
	return data, nil
}

// AwaitKubeconfig waits for the way into a cluster. Tell is told what the cluster waits for, each time that changes.
func (p *Plane) AwaitKubeconfig(ctx context.Context, c *anywherev1.Cluster, tell func(waiting string)) ([]byte, error) {
	last := ""
	for changes := p.Changes(ctx, client.ObjectKeyFromObject(c)); ; {
		data, err := p.KubeconfigOf(ctx, c)
		var early *NotInitializedError
		if !errors.As(err, &early) {
			return data, err
		}
		if early.Waiting != last {
			last = early.Waiting
			tell(last)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (%w)", early, ctx.Err())
		case <-changes:
		}
	}
}

// KubeconfigOf is the way into a cluster, or a NotInitializedError as long as nobody would answer to it.
func (p *Plane) KubeconfigOf(ctx context.Context, c *anywherev1.Cluster) ([]byte, error) {
	now := &anywherev1.Cluster{}
	if err := p.Client.Get(ctx, client.ObjectKeyFromObject(c), now); err != nil {
		return nil, fmt.Errorf("reading cluster %q: %w", c.Name, err)
	}
	initialized := apimeta.FindStatusCondition(now.Status.Conditions, anywherev1.ControlPlaneInitialized)
	if initialized == nil {
		return nil, &NotInitializedError{c.Name, "nobody has looked at it yet"}
	}
	if !apimeta.IsStatusConditionTrue(now.Status.Conditions, anywherev1.ControlPlaneInitialized) {
		return nil, &NotInitializedError{c.Name, initialized.Message}
	}
	data, err := p.Kubeconfig(ctx, c)
	if apierrors.IsNotFound(err) {
		return nil, &NotInitializedError{c.Name, "its kubeconfig is not written yet"}
	}
	return data, err
}
