package cluster

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
)

// external makes a cluster with external etcd.
func (w *world) external(name string) {
	w.Helper()
	w.make(name)
	w.change(name, func(c *anywherev1.Cluster) {
		c.Spec.ExternalEtcdConfiguration = &anywherev1.ExternalEtcdConfiguration{Count: 1}
	})
	w.reconcile(name)
}

// etcdIsReady reports that etcd is ready, as its controller does.
func (w *world) etcdIsReady(name string) *etcdv1.EtcdadmCluster {
	w.Helper()
	e := &etcdv1.EtcdadmCluster{}
	w.must(w.Get(w.Context(), system(name+"-etcd"), e))
	e.Status.ObservedGeneration, e.Status.Endpoints = e.Generation, "https://192.0.2.1:2379"
	meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: clusterv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready"})
	w.must(w.Status().Update(w.Context(), e))
	return e
}

func (w *world) refersToControlPlane(name string) bool {
	w.Helper()
	c := &clusterv1.Cluster{}
	w.must(w.Get(w.Context(), system(name), c))
	return c.Spec.ControlPlaneRef.IsDefined()
}

func TestExternalEtcdComesFirst(t *testing.T) {
	w := newWorld(t)
	w.external("apart")
	want := []string{"EtcdadmCluster apart-etcd", "PacketMachineTemplate apart-etcd-1"}
	hasControlPlane := func() bool { return slices.Contains(w.names("apart"), "KubeadmControlPlane apart") }
	for _, name := range want {
		if !slices.Contains(w.names("apart"), name) {
			t.Errorf("%s is missing in %v", name, w.names("apart"))
		}
	}
	if hasControlPlane() || w.refersToControlPlane("apart") {
		t.Error("there is a control plane before etcd is ready")
	}
	ready := meta.FindStatusCondition(w.cluster("apart").Status.Conditions, anywherev1.Ready)
	if ready.Reason != anywherev1.ExternalEtcdNotAvailableReason {
		t.Errorf("Ready is %+v", ready)
	}

	w.etcdIsReady("apart")
	w.reconcile("apart")
	if !hasControlPlane() || !w.refersToControlPlane("apart") {
		t.Errorf("no control plane in %v", w.names("apart"))
	}
	before := w.objects("apart")
	w.reconcile("apart")
	if diff := cmp.Diff(before, w.objects("apart")); diff != "" {
		t.Errorf("another reconcile wrote:\n%s", diff)
	}

	w.change("apart", func(c *anywherev1.Cluster) { c.Spec.ExternalEtcdConfiguration.Count = 3 })
	w.reconcile("apart")
	if k := w.objects("apart")["KubeadmControlPlane apart"]; k != before["KubeadmControlPlane apart"] {
		t.Error("the control plane changes before etcd does")
	}
	if e := w.etcdIsReady("apart"); *e.Spec.Replicas != 3 {
		t.Errorf("etcd has %d replicas", *e.Spec.Replicas)
	}
}

func TestDeletionCompletesTheReferenceToAControlPlane(t *testing.T) {
	w := newWorld(t)
	w.external("cut")
	w.etcdIsReady("cut")
	w.reconcile("cut")
	c := &clusterv1.Cluster{}
	w.must(w.Get(t.Context(), system("cut"), c))
	before := c.DeepCopy()
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}
	c.Finalizers = []string{"test.drover.dev/stay"}
	w.must(w.Patch(t.Context(), c, client.MergeFrom(before)))

	w.must(w.Delete(t.Context(), w.cluster("cut")))
	w.reconcile("cut")
	if !w.refersToControlPlane("cut") {
		t.Error("Cluster API would not delete the control plane")
	}
	w.must(w.Get(t.Context(), system("cut"), &controlplanev1.KubeadmControlPlane{}))
	w.must(w.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
}
