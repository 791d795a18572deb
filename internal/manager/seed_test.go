package manager_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// seedCluster is a cluster in its earliest documented form: no control plane object, only Machines
// for masters, the first of which contains the init configuration, and a MachineDeployment for
// workers.
const seedCluster = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: seed}
spec:
  clusterNetwork: {pods: {cidrBlocks: [172.26.0.0/16]}, services: {cidrBlocks: [172.25.0.0/16]}}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: PacketCluster, name: seed}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: PacketCluster
metadata: {name: seed}
spec: {projectID: PROJECT, metro: da, credentialsRef: {name: packet}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: seed}
spec:
  clusterName: seed
  replicas: 1
  selector: {matchLabels: {set: node}}
  template:
    metadata: {labels: {set: node}}
    spec:
      clusterName: seed
      version: v1.36.3
      bootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: seed}}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: PacketMachineTemplate, name: seed}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: seed}
spec: {template: {spec: {}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: PacketMachineTemplate
metadata: {name: seed}
spec: {template: {spec: {machineType: c3.small.x86, os: ubuntu_20_04}}}`

// seedMaster is one master; CONFIG is the configuration of kubeadm.
const seedMaster = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata: {name: NAME, labels: {cluster.x-k8s.io/control-plane: ""}}
spec:
  clusterName: seed
  version: v1.36.3
  bootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: NAME}}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: PacketMachine, name: NAME}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata: {name: NAME}
spec: CONFIG
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: PacketMachine
metadata: {name: NAME}
spec: {machineType: c3.small.x86, os: ubuntu_20_04, billingCycle: hourly}`

func master(name, config string) string {
	return strings.NewReplacer("NAME", name, "CONFIG", config).Replace(seedMaster)
}

func TestSeedManifestsCreateACluster(t *testing.T) {
	server, _ := ready(t)
	t.Parallel()
	sim := newSimulated(t)
	c, ns := newClient(t, server.Config), server.Namespace(t)
	sim.giveCredentials(t, c, ns)
	createAll(t, c, ns, strings.ReplaceAll(seedCluster, "PROJECT", sim.Project))
	createAll(t, c, ns, master("master-0", "{clusterConfiguration: {}, initConfiguration: {}}"))
	eventuallyCluster(t, func() error { return running(t, c, ns, 2) })

	t.Run("the CA, the admin's kubeconfig and the other keys are in Secrets", func(t *testing.T) {
		for name, keys := range map[string][]string{
			"seed-ca": {"tls.crt", "tls.key"}, "seed-etcd": {"tls.crt", "tls.key"}, "seed-proxy": {"tls.crt", "tls.key"},
			"seed-sa": {"tls.crt", "tls.key"}, "seed-kubeconfig": {"value"},
		} {
			secret := &corev1.Secret{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, secret); err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				if len(secret.Data[key]) == 0 {
					t.Errorf("Secret %s has no %s", name, key)
				}
			}
		}
	})
	t.Run("the kubeconfig opens the cluster, which holds the token that the worker joined with", func(t *testing.T) {
		workload := workloadOf(t, c, ns, "seed")
		nodes, err := workload.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 2 {
			t.Fatalf("%d nodes, %v", len(nodes.Items), err)
		}
		secrets, err := workload.CoreV1().Secrets(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		tokens := 0
		for _, s := range secrets.Items {
			if strings.HasPrefix(s.Name, "bootstrap-token-") && s.Type == corev1.SecretTypeBootstrapToken {
				tokens++
			}
		}
		if tokens == 0 {
			t.Errorf("no token among %d Secrets", len(secrets.Items))
		}
	})
	t.Run("another master joins as soon as a token that was revoked is replaced", func(t *testing.T) {
		setToken(t, c, ns, "revoked")
		createAll(t, c, ns, master("master-1", "{joinConfiguration: {controlPlane: {}}}"))
		eventuallyCluster(t, func() error { return waitsForCredentials(t, c, ns, "master-1") })
		if err := running(t, c, ns, 2); err != nil {
			t.Errorf("machines that were up suffer: %v", err)
		}
		setToken(t, c, ns, sim.anotherToken(t))
		eventuallyCluster(t, func() error { return running(t, c, ns, 3) })
	})
	t.Run("workers scale", func(t *testing.T) {
		md := &clusterv1.MachineDeployment{}
		for _, workers := range []int{2, 1} {
			eventuallyCluster(t, func() error {
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "seed"}, md); err != nil {
					return err
				}
				md.Spec.Replicas = ptr.To(int32(workers))
				return c.Update(t.Context(), md)
			})
			eventuallyCluster(t, func() error { return checkMachineCount(t, c, ns, 2+workers) })
		}
	})
	t.Run("deletion leaves nothing", func(t *testing.T) {
		deleteCluster(t, c, ns, "seed")
		if devices, addresses := sim.Left(t); devices != 0 || addresses != 0 {
			t.Errorf("got %d devices and %d addresses, want none", devices, addresses)
		}
	})
}

// checkMachineCount reports whether there is this number of machines and all of them are nodes.
func checkMachineCount(t *testing.T, c client.Client, ns string, n int) error {
	t.Helper()
	machines := &clusterv1.MachineList{}
	if err := c.List(t.Context(), machines, client.InNamespace(ns)); err != nil {
		return err
	}
	if len(machines.Items) != n {
		return fmt.Errorf("%d machines, want %d", len(machines.Items), n)
	}
	return running(t, c, ns, n)
}

// workloadOf connects to a cluster with the kubeconfig in its Secret.
func workloadOf(t *testing.T, c client.Client, ns, name string) kubernetes.Interface {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name + "-kubeconfig"}, secret); err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	if err != nil {
		t.Fatal(err)
	}
	workload, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return workload
}

// setToken rotates the credentials of the cluster.
func setToken(t *testing.T, c client.Client, ns, token string) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "packet"}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Data["PACKET_API_KEY"] = []byte(token)
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// waitsForCredentials reports whether the Machine reports the problem.
func waitsForCredentials(t *testing.T, c client.Client, ns, name string) error {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, m); err != nil {
		return err
	}
	for _, condition := range m.Status.Conditions {
		if condition.Type == clusterv1.MachineInfrastructureReadyCondition && strings.Contains(condition.Message, "Invalid authentication token") {
			return nil
		}
	}
	return errors.New("the Machine does not say what is wrong")
}
