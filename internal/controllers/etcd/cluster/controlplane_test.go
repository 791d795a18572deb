package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
)

func TestReportable(t *testing.T) {
	healthy := metav1.Condition{Type: etcdv1.EtcdClusterHealthy, Status: metav1.ConditionTrue, Reason: etcdv1.HealthyReason}
	down := metav1.Condition{Status: metav1.ConditionUnknown, Reason: controlplanev1.KubeadmControlPlaneEtcdClusterConnectionDownReason}
	for name, tt := range map[string]struct {
		now        *metav1.Condition
		components metav1.ConditionStatus
		stacked    bool
		want       bool
	}{
		"nothing is reported":           {components: metav1.ConditionTrue, want: true},
		"the control plane has its own": {components: metav1.ConditionTrue, stacked: true},
		"it is reported":                {now: &healthy, components: metav1.ConditionTrue},
		"another reason":                {now: &metav1.Condition{Status: metav1.ConditionTrue, Reason: "Other"}, components: metav1.ConditionFalse, want: true},
		"a new cluster":                 {},
		"Cluster API can't reach it":    {now: &down, components: metav1.ConditionUnknown},
		"Cluster API reaches it again":  {now: &down, components: metav1.ConditionTrue, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			k := &controlplanev1.KubeadmControlPlane{}
			if !tt.stacked {
				k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints = []string{"https://192.0.2.1:2379"}
			}
			if tt.now != nil {
				c := *tt.now
				c.Type = controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition
				conditions.Set(k, c)
			}
			if tt.components != "" {
				conditions.Set(k, metav1.Condition{Type: controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition, Status: tt.components, Reason: "R"})
			}
			if got := reportable(k, healthy); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
