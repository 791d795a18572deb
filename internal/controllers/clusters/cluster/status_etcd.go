package cluster

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
)

// etcdConditions are the conditions of external etcd in the order in which they become True.
var etcdConditions = []string{
	etcdv1.EtcdEndpointsAvailable, etcdv1.EtcdCertificatesAvailable, etcdv1.Initialized, etcdv1.EtcdClusterHealthy,
	etcdv1.EtcdClusterResizeCompleted, etcdv1.EtcdMachinesSpecUpToDate,
}

func (f facts) hasExternalEtcd() bool { return f.cluster.Spec.ExternalEtcdConfiguration != nil }

// etcdReady follows external etcd. Its control plane starts, and changes, only when etcd is ready.
func etcdReady(f facts) verdict {
	e := f.etcd
	switch {
	case e == nil:
		return no(anywherev1.ExternalEtcdNotAvailableReason, "%s", anywherev1.EtcdNotAvailableMessage)
	case build.EtcdReady(e):
		return yes(anywherev1.ReadyReason)
	case e.Status.ObservedGeneration != e.Generation && e.Status.ObservedGeneration > 0:
		return no(anywherev1.OutdatedInformationReason, "%s", anywherev1.EtcdNotReadyMessage)
	}
	problem := etcdProblem(e)
	if problem == nil {
		return no(anywherev1.ExternalEtcdNotAvailableReason, "%s", anywherev1.EtcdNotReadyMessage)
	}
	return no(etcdReason(e, problem), "%s", text.Truncate(anywherev1.EtcdNotReadyMessage+": "+problem.Message))
}

// etcdProblem returns the first condition that is not met, or nil.
func etcdProblem(e *etcdv1.EtcdadmCluster) *metav1.Condition {
	for _, kind := range etcdConditions {
		if c := meta.FindStatusCondition(e.Status.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// etcdReason returns the reason that the same state of a control plane would have.
func etcdReason(e *etcdv1.EtcdadmCluster, problem *metav1.Condition) string {
	switch {
	case problem.Reason == etcdv1.RollingOutReason:
		return anywherev1.RollingUpgradeInProgressReason
	case problem.Reason != etcdv1.ScalingReason:
		return anywherev1.ExternalEtcdNotAvailableReason
	case e.Status.ReadyReplicas < ptr.Deref(e.Spec.Replicas, 1):
		return anywherev1.ScalingUpReason
	default:
		return anywherev1.ScalingDownReason
	}
}

// etcdWait returns that the control plane waits for external etcd, or nil.
func etcdWait(f facts) *verdict {
	if !f.hasExternalEtcd() {
		return nil
	}
	etcd := etcdReady(f)
	if etcd.status == metav1.ConditionTrue {
		return nil
	}
	return &verdict{metav1.ConditionFalse, anywherev1.ExternalEtcdNotAvailableReason, etcd.message}
}
