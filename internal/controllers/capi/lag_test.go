package capi

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/lagtest"
)

const (
	// lag is the delay of the manager's watches.
	lag = 5 * time.Second
	// laggingClusters is the number of clusters created under lag.
	laggingClusters = 50
	infraGroup      = "infrastructure.cluster.x-k8s.io"
)

// startControllers adds reconcilers of the table by name.
func (f *fixture) startControllers(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		for _, c := range controllers {
			if c.name == name {
				must(t, c.setup(t.Context(), f.wiring))
			}
		}
	}
}

// cluster creates a cluster with ready infrastructure, so that its control plane can start.
func (f *fixture) cluster(t *testing.T, name string) {
	t.Helper()
	infra := func(kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": infraGroup + "/v1beta1", "kind": kind,
			"metadata": map[string]any{"namespace": f.namespace, "name": name}, "spec": spec,
		}}
	}
	f.create(t, infra("PacketMachineTemplate", map[string]any{"template": map[string]any{"spec": map[string]any{
		"os": "ubuntu_24_04", "billingCycle": "hourly", "machineType": "local.small",
	}}}))
	packetCluster := infra("PacketCluster", map[string]any{
		"projectID": "p", "metro": "da", "controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(1)},
	})
	f.create(t, packetCluster)
	must(t, unstructured.SetNestedField(packetCluster.Object, true, "status", "initialization", "provisioned"))
	must(t, f.live.Status().Update(t.Context(), packetCluster))
	f.create(t, &controlplanev1.KubeadmControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: controlplanev1.KubeadmControlPlaneSpec{
			Replicas: ptr.To(int32(1)), Version: "v1.36.3",
			MachineTemplate: controlplanev1.KubeadmControlPlaneMachineTemplate{Spec: controlplanev1.KubeadmControlPlaneMachineTemplateSpec{
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: "PacketMachineTemplate", Name: name},
			}},
			KubeadmConfigSpec: bootstrapv1.KubeadmConfigSpec{ClusterConfiguration: bootstrapv1.ClusterConfiguration{
				EncryptionAlgorithm: bootstrapv1.EncryptionAlgorithmECDSAP256,
			}},
		},
	})
	f.create(t, &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: clusterv1.ClusterSpec{
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: "PacketCluster", Name: name},
			ControlPlaneRef:   clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubeadmControlPlane", Name: name},
		},
	})
}

func TestLaggingWatchesCreateOneFirstMachine(t *testing.T) {
	must(t, EnableFeatures())
	// Only Machines lag, so that a control plane is reconciled before its Machine is in the cache.
	watches := &lagtest.Watches{Resources: []string{"machines"}}
	watches.Set(lag)
	f := setupBehind(t, watches.Wrap)
	setAPIVersionGetters(f.wiring.client)
	f.startControllers(t, "Cluster", "Machine", "KubeadmConfig", "KubeadmControlPlane")
	for i := range laggingClusters {
		f.cluster(t, fmt.Sprintf("lagging-%d", i))
	}
	// A control plane that counts its Machine has observed everything it created.
	within(t, 2*kubetest.Patience, func() error {
		all := &controlplanev1.KubeadmControlPlaneList{}
		must(t, f.live.List(t.Context(), all, client.InNamespace(f.namespace)))
		counted := 0
		for i := range all.Items {
			if ptr.Deref(all.Items[i].Status.Replicas, 0) > 0 {
				counted++
			}
		}
		if counted < laggingClusters {
			return fmt.Errorf("%d of %d control planes count a machine", counted, laggingClusters)
		}
		return nil
	})
	machines := &clusterv1.MachineList{}
	must(t, f.live.List(t.Context(), machines, client.InNamespace(f.namespace)))
	of := map[string]int{}
	for i := range machines.Items {
		of[machines.Items[i].Spec.ClusterName]++
	}
	for i := range laggingClusters {
		if name := fmt.Sprintf("lagging-%d", i); of[name] != 1 {
			t.Errorf("cluster %q has %d first machines", name, of[name])
		}
	}
}
