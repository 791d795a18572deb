package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
)

// healthyEtcd returns the facts of a healthy cluster with external etcd.
func healthyEtcd() facts {
	f := healthyFacts()
	f.cluster.Spec.ExternalEtcdConfiguration = &anywherev1.ExternalEtcdConfiguration{Count: 3}
	f.etcd = &etcdv1.EtcdadmCluster{ObjectMeta: metav1.ObjectMeta{Name: "c-etcd", Generation: 2}}
	f.etcd.Status.ObservedGeneration, f.etcd.Status.Endpoints = 2, "https://192.0.2.1:2379"
	f.etcd.Status.Conditions = []metav1.Condition{
		condition(clusterv1.ReadyCondition, true), condition(etcdv1.EtcdMachinesSpecUpToDate, true), condition(etcdv1.EtcdClusterHealthy, true),
	}
	return f
}

func TestConditionsWithExternalEtcd(t *testing.T) {
	const waits = "False ExternalEtcdNotAvailable "
	for name, tt := range map[string]struct {
		change func(*facts)
		// etcd, initialized and controlPlane are the conditions.
		etcd, initialized, controlPlane string
	}{
		"all is well": {func(*facts) {}, "True Ready ", "True Initialized ", "True Ready "},
		"a new cluster": {
			func(f *facts) { f.etcd, f.controlPlane = nil, nil },
			waits + "Etcd cluster is not available", waits + "Etcd cluster is not available", waits + "Etcd cluster is not available",
		},
		"etcd is forming": {
			func(f *facts) {
				f.controlPlane, f.etcd.Status.Conditions, f.etcd.Status.Endpoints = nil, []metav1.Condition{condition(etcdv1.Initialized, false)}, ""
			},
			waits + "Etcd is not ready: Initialized is not well", waits + "Etcd is not ready: Initialized is not well", waits + "Etcd is not ready: Initialized is not well",
		},
		"etcd is upgraded first": {
			func(f *facts) {
				f.etcd.Status.Conditions[0], f.etcd.Status.Conditions[1] = condition(clusterv1.ReadyCondition, false), condition(etcdv1.EtcdMachinesSpecUpToDate, false)
				f.etcd.Status.Conditions[1].Reason = etcdv1.RollingOutReason
			},
			"False RollingUpgradeInProgress Etcd is not ready: EtcdMachinesSpecUpToDate is not well", "True Initialized ", waits + "Etcd is not ready: EtcdMachinesSpecUpToDate is not well",
		},
		"health comes before the rollout": {
			func(f *facts) {
				for i := range f.etcd.Status.Conditions {
					f.etcd.Status.Conditions[i] = condition(f.etcd.Status.Conditions[i].Type, false)
				}
			},
			waits + "Etcd is not ready: EtcdClusterHealthy is not well", "True Initialized ", waits + "Etcd is not ready: EtcdClusterHealthy is not well",
		},
		"etcd grows": {
			func(f *facts) {
				f.etcd.Status.Conditions[0], f.etcd.Status.Conditions[1] = condition(clusterv1.ReadyCondition, false), condition(etcdv1.EtcdClusterResizeCompleted, false)
				f.etcd.Status.Conditions[1].Reason, f.etcd.Spec.Replicas = etcdv1.ScalingReason, ptr.To[int32](3)
			},
			"False ScalingUp Etcd is not ready: EtcdClusterResizeCompleted is not well", "True Initialized ",
			waits + "Etcd is not ready: EtcdClusterResizeCompleted is not well",
		},
		"the spec has not been observed": {
			func(f *facts) { f.etcd.Generation = 3 }, "False OutdatedInformation Etcd is not ready", "True Initialized ", waits + "Etcd is not ready",
		},
		"the control plane comes next": {
			func(f *facts) { f.controlPlane = nil }, "True Ready ",
			"False ControlPlaneInitializationInProgress The first control plane instance is not available yet",
			"False ControlPlaneInitializationInProgress The first control plane instance is not available yet",
		},
	} {
		f := healthyEtcd()
		tt.change(&f)
		got := status(f)
		for kind, want := range map[string]string{
			anywherev1.EtcdReady: tt.etcd, anywherev1.ControlPlaneInitialized: tt.initialized, anywherev1.ControlPlaneReady: tt.controlPlane,
		} {
			c := meta.FindStatusCondition(got.Conditions, kind)
			if c == nil || string(c.Status)+" "+c.Reason+" "+c.Message != want {
				t.Errorf("%s: %s is %+v, want %q", name, kind, c, want)
			}
		}
		if ready := meta.IsStatusConditionTrue(got.Conditions, anywherev1.Ready); ready != (name == "all is well") {
			t.Errorf("%s: ready is %t", name, ready)
		}
	}
	if c := meta.FindStatusCondition(status(healthyFacts()).Conditions, anywherev1.EtcdReady); c != nil {
		t.Errorf("stacked etcd has condition %+v", c)
	}
}
