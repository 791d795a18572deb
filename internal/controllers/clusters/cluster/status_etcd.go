package cluster

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	}
	message := anywherev1.EtcdNotReadyMessage
	if problem := etcdProblem(e); problem != "" {
		message += ": " + problem
	}
	return no(anywherev1.ExternalEtcdNotAvailableReason, "%s", text.Truncate(message))
}

// etcdProblem returns the message of the first condition that is not met, or the empty string if the
// conditions are not about the latest spec.
func etcdProblem(e *etcdv1.EtcdadmCluster) string {
	if e.Status.ObservedGeneration != e.Generation {
		return ""
	}
	for _, kind := range etcdConditions {
		if c := meta.FindStatusCondition(e.Status.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// etcdWait returns that the control plane waits for external etcd, or nil.
func etcdWait(f facts) *verdict {
	if !f.hasExternalEtcd() {
		return nil
	}
	if v := etcdReady(f); v.status != metav1.ConditionTrue {
		return &v
	}
	return nil
}
