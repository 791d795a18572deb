package inspect

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// rewatch is how long a watch that could not be begun waits.
const rewatch = time.Second

// Changes speaks when something about a cluster may have changed, once for many changes that nobody heard of yet. It ends with ctx.
func (p *Plane) Changes(ctx context.Context, cluster client.ObjectKey) <-chan struct{} {
	out := make(chan struct{}, 1)
	parts := []client.ListOption{client.InNamespace(anywherev1.SystemNamespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}}
	go p.notify(ctx, out, &anywherev1.ClusterList{}, client.InNamespace(cluster.Namespace), client.MatchingFields{"metadata.name": cluster.Name})
	go p.notify(ctx, out, &clusterv1.MachineList{}, parts...)
	go p.notify(ctx, out, &infrav1.PacketMachineList{}, parts...)
	return out
}

// notify tells of changes in one list. A watch that ends is begun again, which counts as a change. What the person may not watch is left
// out.
func (p *Plane) notify(ctx context.Context, changes chan<- struct{}, list client.ObjectList, options ...client.ListOption) {
	tell := func() {
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
		tell()
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(rewatch):
			}
			continue
		}
		for range watch.ResultChan() {
			tell()
		}
		watch.Stop()
	}
}
