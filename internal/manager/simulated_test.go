package manager_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/metaltest"
)

// simulated is a metal service with simulated machines.
type simulated struct{ metaltest.Metal }

func newSimulated(t *testing.T) simulated {
	t.Helper()
	return simulated{metaltest.New(t)}
}

// workers are what oldManifests lack.
const workers = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: packet-worker-a}
spec:
  clusterName: packet
  replicas: 2
  selector: {matchLabels: {pool: worker-a}}
  template:
    metadata: {labels: {pool: worker-a}}
    spec:
      clusterName: packet
      version: v1.36.3
      bootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: packet}}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: PacketMachineTemplate, name: packet}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: packet}
spec: {template: {spec: {}}}`

func TestOldManifestsClusterIsCreatedAndDeleted(t *testing.T) {
	server, _ := ready(t)
	sim := newSimulated(t)
	c, ns := newClient(t, server.Config), server.Namespace(t)
	create(t, c, ns, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: packet}, stringData: {PACKET_API_KEY: %q, METAL_API_URL: %q}}`, sim.Token, sim.URL))
	for _, manifest := range strings.Split(strings.ReplaceAll(oldManifests, "projectID: P", "projectID: "+sim.Project)+"\n---\n"+workers, "---\n") {
		create(t, c, ns, manifest)
	}
	eventually(t, func() error { return running(t, c, ns, 3) })
	served := &infrav1.PacketCluster{}
	eventually(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "packet"}, served); err != nil {
			return err
		}
		if served.Status.Endpoint.Machine == "" {
			return fmt.Errorf("no machine holds the endpoint: %+v", served.Status)
		}
		return nil
	})
	if devices, addresses := sim.Left(t); devices != 3 || addresses != 1 {
		t.Errorf("%d devices and %d addresses", devices, addresses)
	}

	deleteCluster(t, c, ns, "packet")
	if devices, addresses := sim.Left(t); devices != 0 || addresses != 0 {
		t.Errorf("got %d devices and %d addresses, want none", devices, addresses)
	}
}

// running reports whether the machines exist and each has its node.
func running(t *testing.T, c client.Client, ns string, want int) error {
	t.Helper()
	machines := &clusterv1.MachineList{}
	if err := c.List(t.Context(), machines, client.InNamespace(ns)); err != nil {
		return err
	}
	nodes := 0
	for _, m := range machines.Items {
		if m.Status.NodeRef.IsDefined() {
			nodes++
		}
	}
	if nodes != want {
		return fmt.Errorf("%d machines, %d nodes, want %d", len(machines.Items), nodes, want)
	}
	return nil
}
