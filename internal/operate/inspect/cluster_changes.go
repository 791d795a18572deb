package inspect

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// rewatch is the delay before a watch that failed to start is retried.
const rewatch = time.Second

// Changes returns a channel that receives when a Cluster or one of its machines may have changed.
// Changes are coalesced until the receiver is ready. The watches end with ctx.
func (p *Plane) Changes(ctx context.Context, cluster client.ObjectKey) <-chan struct{} {
	out := make(chan struct{}, 1)
	parts := []client.ListOption{client.InNamespace(anywherev1.SystemNamespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}}
	go p.notify(ctx, out, &anywherev1.ClusterList{}, named(cluster)...)
	go p.notify(ctx, out, &clusterv1.MachineList{}, parts...)
	go p.notify(ctx, out, &infrav1.PacketMachineList{}, parts...)
	return out
}

// capiChanges is Changes for a Cluster API cluster and its kubeconfig.
func (p *Plane) capiChanges(ctx context.Context, cluster client.ObjectKey) <-chan struct{} {
	out := make(chan struct{}, 1)
	kubeconfig := client.ObjectKey{Namespace: cluster.Namespace, Name: secret.Name(cluster.Name, secret.Kubeconfig)}
	go p.notify(ctx, out, &clusterv1.ClusterList{}, named(cluster)...)
	go p.notify(ctx, out, &corev1.SecretList{}, named(kubeconfig)...)
	return out
}

// named selects one object.
func named(key client.ObjectKey) []client.ListOption {
	return []client.ListOption{client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}}
}

// notify sends when something in a list changes. Starting a watch counts as a change, because
// something may have happened before. It gives up on lists that the caller may not watch.
func (p *Plane) notify(ctx context.Context, changes chan<- struct{}, list client.ObjectList, options ...client.ListOption) {
	changed := func() {
		select {
		case changes <- struct{}{}:
		default:
		}
	}
	for ctx.Err() == nil {
		watch, err := p.Client.Watch(ctx, list, options...)
		if apierrors.IsForbidden(err) {
			return
		}
		changed()
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(rewatch):
			}
			continue
		}
		for range watch.ResultChan() {
			changed()
		}
		watch.Stop()
	}
}

// Watch returns a channel that receives when an object, whose list is given, may have changed.
// Changes are coalesced until the receiver is ready. The watch ends with ctx.
func (p *Plane) Watch(ctx context.Context, list client.ObjectList, key client.ObjectKey) <-chan struct{} {
	out := make(chan struct{}, 1)
	go p.notify(ctx, out, list, named(key)...)
	return out
}
