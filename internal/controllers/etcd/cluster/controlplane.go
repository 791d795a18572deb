package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
)

// tellControlPlane reports the health of etcd in the condition of the control plane that Cluster
// API leaves to whoever manages external etcd.
func (c *Controller) tellControlPlane(ctx context.Context, s *scope) error {
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
	conditions.Set(k, metav1.Condition{
		Type: controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition, Status: healthy.Status, Reason: healthy.Reason, Message: healthy.Message,
	})
	err := c.Client.Status().Patch(ctx, k, ctrlclient.MergeFromWithOptions(before, ctrlclient.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsConflict(err) { // The next observation is another chance.
		return fmt.Errorf("reporting to KubeadmControlPlane %q: %w", k.Name, err)
	}
	return nil
}

// reportable reports whether the condition of a control plane that uses external etcd has to
// change. While Cluster API can't inspect the cluster, it sets this condition and that of the
// components to Unknown, again and again.
func reportable(k *controlplanev1.KubeadmControlPlane, healthy metav1.Condition) bool {
	if len(k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints) == 0 {
		return false
	}
	components := conditions.Get(k, controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition)
	if components == nil || components.Status == metav1.ConditionUnknown {
		return false
	}
	now := conditions.Get(k, controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition)
	return now == nil || now.Status != healthy.Status || now.Reason != healthy.Reason || now.Message != healthy.Message
}
