package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
)

// reportToControlPlane reports the health of etcd in the condition of the control plane that
// Cluster API leaves to whoever manages external etcd.
func (c *Controller) reportToControlPlane(ctx context.Context, s *scope) error {
	healthy := meta.FindStatusCondition(s.etcd.Status.Conditions, etcdv1.EtcdClusterHealthy)
	if s.cluster == nil || s.Deleting() || healthy == nil || s.cluster.Spec.ControlPlaneRef.Kind != "KubeadmControlPlane" {
		return nil
	}
	k := &controlplanev1.KubeadmControlPlane{}
	if err := c.Client.Get(ctx, ctrlclient.ObjectKey{Namespace: s.etcd.Namespace, Name: s.cluster.Spec.ControlPlaneRef.Name}, k); err != nil {
		return ctrlclient.IgnoreNotFound(err)
	}
	if !reportable(k, *healthy) {
		return nil
	}
	before := k.DeepCopy()
	setEtcdHealth(k, *healthy)
	err := c.Client.Status().Patch(ctx, k, ctrlclient.MergeFromWithOptions(before, ctrlclient.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsConflict(err) { // The next observation is another chance.
		return fmt.Errorf("reporting to KubeadmControlPlane %q: %w", k.Name, err)
	}
	return nil
}
