package manager_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// etcdManifests are existing manifests of external etcd, besides those of the cluster.
const etcdManifests = `
apiVersion: etcdcluster.cluster.x-k8s.io/v1beta1
kind: EtcdadmCluster
metadata: {name: packet-etcd, labels: {cluster.x-k8s.io/cluster-name: packet}}
spec:
  replicas: 3
  infrastructureTemplate: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: PacketMachineTemplate, name: packet}
  etcdadmConfigSpec: {etcdadmBuiltin: true, format: cloud-config, cloudInitConfig: {version: 3.5.7}}`

// externalControlPlane is the control plane that uses the endpoints.
const externalControlPlane = `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata: {name: packet}
spec:
  replicas: 1
  version: v1.36.3
  machineTemplate:
    infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: PacketMachineTemplate, name: packet}
  kubeadmConfigSpec:
    clusterConfiguration:
      etcd:
        external:
          endpoints: [%s]
          caFile: /etc/kubernetes/pki/etcd/ca.crt
          certFile: /etc/kubernetes/pki/apiserver-etcd-client.crt
          keyFile: /etc/kubernetes/pki/apiserver-etcd-client.key`

// TestExternalEtcdOnSimulatedMachines follows external etcd from its manifests to its removal:
// three members form, a control plane uses them, all are replaced without a change of the
// endpoints, one is lost and replaced, and nothing is left afterwards.
func TestExternalEtcdOnSimulatedMachines(t *testing.T) {
	server, _ := ready(t)
	sim := newSimulated(t)
	c, ns := newClient(t, server.Config), server.Namespace(t)
	create(t, c, ns, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: packet}, stringData: {PACKET_API_KEY: %q, METAL_API_URL: %q}}`, sim.Token, sim.URL))
	manifests := strings.Split(strings.ReplaceAll(oldManifests, "projectID: P", "projectID: "+sim.Project)+"\n---\n"+etcdManifests, "---\n")
	for _, manifest := range manifests {
		if !strings.Contains(manifest, "kind: KubeadmControlPlane\n") {
			create(t, c, ns, manifest)
		}
	}
	etcd := awaitEtcd(t, c, ns, func(*etcdv1.EtcdadmCluster) error { return nil })
	endpoints := etcd.Status.Endpoints
	if n := len(strings.Split(endpoints, ",")); n != 3 || etcd.Status.ReadyReplicas != 3 || !etcd.Status.CreationComplete {
		t.Fatalf("status: %+v", etcd.Status)
	}

	create(t, c, ns, fmt.Sprintf(externalControlPlane, endpoints))
	eventuallyCluster(t, func() error { return running(t, c, ns, 1) })

	before := memberMachines(t, c, ns)
	etcd.Spec.EtcdadmConfigSpec.CipherSuites = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
	if err := c.Update(t.Context(), etcd); err != nil {
		t.Fatal(err)
	}
	most := 0
	etcd = awaitEtcd(t, c, ns, func(*etcdv1.EtcdadmCluster) error {
		now := memberMachines(t, c, ns)
		most = max(most, len(now))
		for name := range before {
			if now[name] {
				return fmt.Errorf("machine %q is not replaced", name)
			}
		}
		return nil
	})
	if most > 4 || etcd.Status.Endpoints != endpoints {
		t.Errorf("%d machines, endpoints %q were %q", most, etcd.Status.Endpoints, endpoints)
	}

	lost := &infrav1.PacketMachine{}
	lost.Namespace, lost.Name = ns, etcd.Status.Members[0].Name
	if err := c.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	etcd = awaitEtcd(t, c, ns, func(*etcdv1.EtcdadmCluster) error {
		if memberMachines(t, c, ns)[lost.Name] {
			return fmt.Errorf("machine %q still exists", lost.Name)
		}
		return nil
	})
	if etcd.Status.Endpoints != endpoints {
		t.Errorf("endpoints %q were %q", etcd.Status.Endpoints, endpoints)
	}

	deleteCluster(t, c, ns, "packet")
	if devices, addresses := sim.Left(t); devices != 0 || addresses != 0 {
		t.Errorf("%d devices and %d addresses are left", devices, addresses)
	}
	eventually(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(etcd), etcd); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the EtcdadmCluster still exists (%w)", err)
		}
		return nil
	})
}

// awaitEtcd waits until etcd is ready and more holds.
func awaitEtcd(t *testing.T, c client.Client, ns string, more func(*etcdv1.EtcdadmCluster) error) *etcdv1.EtcdadmCluster {
	t.Helper()
	etcd := &etcdv1.EtcdadmCluster{}
	eventuallyCluster(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "packet-etcd"}, etcd); err != nil {
			return err
		}
		if err := more(etcd); err != nil {
			return fmt.Errorf("%w: %+v", err, etcd.Status)
		}
		if etcd.Status.ObservedGeneration != etcd.Generation || !meta.IsStatusConditionTrue(etcd.Status.Conditions, clusterv1.ReadyCondition) ||
			len(memberMachines(t, c, ns)) != 3 || len(etcd.Status.Members) != 3 {
			return fmt.Errorf("etcd is not ready: %+v", etcd.Status)
		}
		return nil
	})
	return etcd
}

// memberMachines returns the machines of external etcd.
func memberMachines(t *testing.T, c client.Client, ns string) map[string]bool {
	t.Helper()
	list := &infrav1.PacketMachineList{}
	if err := c.List(t.Context(), list, client.InNamespace(ns), client.HasLabels{etcdv1.MemberLabel}); err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, m := range list.Items {
		out[m.Name] = true
	}
	return out
}
