package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lastLook is how long it may take to say why a wait was in vain.
const lastLook = 5 * time.Second

// NotInitializedError means that a cluster has no API server yet.
type NotInitializedError struct {
	Cluster Cluster
}

func (e *NotInitializedError) Error() string {
	msg := fmt.Sprintf("cluster %q has no API server yet", e.Cluster.Key())
	if waiting := e.Cluster.Waiting(); waiting != "" {
		msg += ": it waits for " + waiting
	}
	return msg
}

// Kubeconfig returns the kubeconfig that Cluster API keeps for a cluster, or a
// NotInitializedError as long as nobody would answer to it.
func (f *Fleet) Kubeconfig(ctx context.Context, c Cluster) ([]byte, error) {
	key := client.ObjectKey{Namespace: c.Namespace, Name: c.Name}
	var now clusterv1.Cluster
	if err := f.client.Get(ctx, key, &now); err != nil {
		return nil, fmt.Errorf("reading cluster %q: %w", c.Key(), err)
	}
	if done := now.Status.Initialization.ControlPlaneInitialized; done == nil || !*done {
		return nil, &NotInitializedError{Cluster: summarize(&now)}
	}
	var kept corev1.Secret
	key.Name = secret.Name(c.Name, secret.Kubeconfig)
	if err := f.client.Get(ctx, key, &kept); apierrors.IsNotFound(err) {
		return nil, &NotInitializedError{Cluster: summarize(&now)}
	} else if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %q: %w", c.Key(), err)
	}
	data := kept.Data[secret.KubeconfigDataName]
	if len(data) == 0 {
		return nil, fmt.Errorf("the Secret %q has no key %q", key, secret.KubeconfigDataName)
	}
	return data, nil
}

// AwaitKubeconfig waits for the kubeconfig of a cluster. Tell is told what the
// cluster waits for, each time that changes.
func (f *Fleet) AwaitKubeconfig(ctx context.Context, c Cluster, tell func(waiting string)) ([]byte, error) {
	last := "nothing that was told"
	for {
		// Watched before it is looked at, so that nothing is missed in between.
		changed, stop, err := f.watch(ctx, c)
		if err != nil {
			return nil, err
		}
		for open := true; open; _, open = <-changed {
			data, err := f.Kubeconfig(ctx, c)
			var early *NotInitializedError
			if ctx.Err() != nil {
				break
			}
			if !errors.As(err, &early) {
				stop()
				return data, err
			}
			if now := early.Cluster.Waiting(); now != last {
				tell(now)
				last = now
			}
		}
		stop()
		if ctx.Err() != nil {
			return nil, f.gaveUp(ctx, c)
		}
	}
}

// gaveUp says what the cluster still waits for, in spite of a context that has
// ended.
func (f *Fleet) gaveUp(ended context.Context, c Cluster) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ended), lastLook)
	defer cancel()
	if _, err := f.Kubeconfig(ctx, c); err != nil {
		return fmt.Errorf("%w (%w)", err, ended.Err())
	}
	return fmt.Errorf("waiting for cluster %q: %w", c.Key(), ended.Err())
}

// watch returns a channel that speaks when the cluster or its kubeconfig
// changes, and is closed when that is no longer watched.
func (f *Fleet) watch(ctx context.Context, c Cluster) (changed <-chan struct{}, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan struct{}, 1)
	var watches sync.WaitGroup
	for list, name := range map[client.ObjectList]string{
		&clusterv1.ClusterList{}: c.Name, &corev1.SecretList{}: secret.Name(c.Name, secret.Kubeconfig),
	} {
		w, err := f.client.Watch(ctx, list, client.InNamespace(c.Namespace), client.MatchingFields{"metadata.name": name})
		if err != nil {
			cancel()
			return nil, nil, fmt.Errorf("watching cluster %q: %w", c.Key(), err)
		}
		watches.Go(func() {
			defer cancel() // One alone is not enough.
			defer w.Stop()
			for range w.ResultChan() {
				select {
				case out <- struct{}{}:
				default: // It has not been heard yet.
				}
			}
		})
	}
	go func() {
		watches.Wait()
		close(out)
	}()
	return out, cancel, nil
}
