package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/workload/safeconfig"
)

// recheck bounds how long a change goes unnoticed where the caller may read but not watch.
const recheck = 10 * time.Second

// What holds up a cluster without a kubeconfig, if no condition says so.
const (
	notObserved  = "the controller has not observed it yet"
	noKubeconfig = "its kubeconfig does not exist yet"
)

// NotInitializedError means that a cluster has no API server yet.
type NotInitializedError struct{ Cluster, Waiting string }

func (e *NotInitializedError) Error() string {
	return fmt.Sprintf("cluster %q has no API server yet: %s", e.Cluster, e.Waiting)
}

// KubeconfigSource is the cluster that a kubeconfig is read from.
type KubeconfigSource struct {
	client.ObjectKey

	// read returns a NotInitializedError until the API server of the cluster can answer.
	read  func(context.Context) ([]byte, error)
	watch func(context.Context) <-chan struct{}
}

// KubeconfigSource finds a cluster by name, in any namespace if namespace is empty. Clusters of
// Drover come first, because their creators may not be able to read anything else; clusters that
// exist in Cluster API only come next.
func (p *Plane) KubeconfigSource(ctx context.Context, namespace, name string) (*KubeconfigSource, error) {
	known, missing := p.Find(ctx, namespace, name)
	if missing == nil {
		key := client.ObjectKeyFromObject(known)
		return &KubeconfigSource{
			ObjectKey: key,
			read:      func(ctx context.Context) ([]byte, error) { return p.initializedKubeconfig(ctx, key) },
			watch:     func(ctx context.Context) <-chan struct{} { return p.Changes(ctx, key) },
		}, nil
	}
	c, err := p.FindCAPI(ctx, namespace, name)
	if apierrors.IsForbidden(err) {
		// Creators have clusters of Drover only, so what those lack is the answer.
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	return &KubeconfigSource{
		ObjectKey: c.Key(),
		read:      func(ctx context.Context) ([]byte, error) { return p.capiKubeconfig(ctx, c.Key()) },
		watch:     func(ctx context.Context) <-chan struct{} { return p.capiChanges(ctx, c.Key()) },
	}, nil
}

// Read returns the kubeconfig, or a NotInitializedError while the cluster has no API server.
func (s *KubeconfigSource) Read(ctx context.Context) ([]byte, error) { return s.read(ctx) }

// Await waits for the kubeconfig. It calls progress whenever what the cluster waits for changes.
func (s *KubeconfigSource) Await(ctx context.Context, progress func(waiting string)) ([]byte, error) {
	var last *NotInitializedError
	for changes := s.watch(ctx); ; {
		data, err := s.read(ctx)
		var early *NotInitializedError
		switch {
		case last != nil && ctx.Err() != nil:
			return nil, fmt.Errorf("%w (%w)", last, ctx.Err())
		case !errors.As(err, &early):
			return data, err
		case last == nil || early.Waiting != last.Waiting:
			progress(early.Waiting)
		}
		last = early
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (%w)", last, ctx.Err())
		case <-changes:
		case <-time.After(recheck):
		}
	}
}

// Kubeconfig returns the kubeconfig of a Cluster. Its creator may read the copy next to the Cluster
// and nothing else; administrators can also read the original.
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
		return nil, fmt.Errorf("reading the kubeconfig of cluster %q: Secret %q has no key %q", cluster, key, secret.KubeconfigDataName)
	}
	_, err := safeconfig.Check(ctx, p.Client, namespace, func(allowed safeconfig.Policy) (*clientcmdapi.Config, error) {
		return safeconfig.Load(data, allowed)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %q from Secret %q: %w", cluster, key, err)
	}
	return data, nil
}

// RESTConfig returns the connection to a Cluster, from the kubeconfig that Kubeconfig returns.
func (p *Plane) RESTConfig(ctx context.Context, c *anywherev1.Cluster) (*rest.Config, error) {
	data, err := p.Kubeconfig(ctx, c)
	if err != nil {
		return nil, err
	}
	return restConfig(data)
}

// restConfig parses what kubeconfigIn has checked.
func restConfig(data []byte) (*rest.Config, error) {
	return safeconfig.REST(data, safeconfig.Policy{InsecureTLS: true})
}

// initializedKubeconfig reads the kubeconfig of a Cluster whose control plane is initialized.
func (p *Plane) initializedKubeconfig(ctx context.Context, key client.ObjectKey) ([]byte, error) {
	now := &anywherev1.Cluster{}
	if err := p.Client.Get(ctx, key, now); err != nil {
		return nil, fmt.Errorf("reading cluster %q: %w", key.Name, err)
	}
	initialized := meta.FindStatusCondition(now.Status.Conditions, anywherev1.ControlPlaneInitialized)
	if initialized == nil {
		return nil, &NotInitializedError{key.Name, notObserved}
	}
	if !meta.IsStatusConditionTrue(now.Status.Conditions, anywherev1.ControlPlaneInitialized) {
		return nil, &NotInitializedError{key.Name, initialized.Message}
	}
	data, err := p.Kubeconfig(ctx, now)
	if apierrors.IsNotFound(err) {
		return nil, &NotInitializedError{key.Name, noKubeconfig}
	}
	return data, err
}

// capiKubeconfig reads the kubeconfig of a Cluster API cluster whose control plane is initialized.
func (p *Plane) capiKubeconfig(ctx context.Context, key client.ObjectKey) ([]byte, error) {
	now := &clusterv1.Cluster{}
	if err := p.Client.Get(ctx, key, now); err != nil {
		return nil, fmt.Errorf("reading cluster %q: %w", key, err)
	}
	summary := summarizeCAPI(now)
	if done := now.Status.Initialization.ControlPlaneInitialized; done == nil || !*done {
		return nil, &NotInitializedError{key.String(), cmp.Or(summary.Waiting(), notObserved)}
	}
	data, err := p.kubeconfigIn(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return nil, &NotInitializedError{key.String(), cmp.Or(summary.Waiting(), noKubeconfig)}
	}
	return data, err
}

// CAPIConfig returns the connection to the API server of a Cluster API cluster.
func (p *Plane) CAPIConfig(ctx context.Context, key client.ObjectKey) (*rest.Config, error) {
	data, err := p.kubeconfigIn(ctx, key.Namespace, key.Name)
	if err != nil {
		return nil, err
	}
	return restConfig(data)
}
