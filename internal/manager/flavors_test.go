package manager_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// TestEveryFlavorBecomesACluster applies the templates as clusterctl renders them with upstream's
// variables.
func TestEveryFlavorBecomesACluster(t *testing.T) {
	server, _ := ready(t)
	t.Parallel()
	for _, tc := range []struct {
		name  string
		files []string
		// meanwhile simulates the outside world until the cluster is ready.
		meanwhile func(t *testing.T, c client.Client, sim simulated, ns string)
	}{
		{name: "the default", files: []string{"cluster-template.yaml"}},
		{name: "kube-vip", files: []string{"cluster-template-kube-vip.yaml"}, meanwhile: simulateBGP},
		{name: "ClusterClass", files: []string{"clusterclass-packet.yaml", "cluster-template-clusterclass.yaml"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			sim := newSimulated(t)
			c, ns := newClient(t, server.Config), server.Namespace(t)
			sim.giveCredentials(t, c, ns)
			values := maps.Clone(variables)
			maps.Copy(values, map[string]string{"PROJECT_ID": sim.Project, "CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "1"})
			for _, file := range tc.files {
				for _, obj := range render(t, "../../templates/"+file, values) {
					obj.SetNamespace(ns)
					nameCredentials(t, &obj)
					if err := c.Create(t.Context(), &obj); err != nil {
						t.Fatalf("creating %s %q: %v", obj.GetKind(), obj.GetName(), err)
					}
				}
			}
			if tc.meanwhile != nil {
				tc.meanwhile(t, c, sim, ns)
			}
			eventuallyCluster(t, func() error {
				cluster := &clusterv1.Cluster{}
				if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: values["CLUSTER_NAME"]}, cluster); err != nil {
					return err
				}
				return wellIn(cluster, clusterv1.ClusterAvailableCondition)
			})
			if err := checkMachineCount(t, c, ns, 2); err != nil {
				t.Error(err)
			}
			deleteCluster(t, c, ns, values["CLUSTER_NAME"])
			if devices, addresses := sim.Left(t); devices != 0 || addresses != 0 {
				t.Errorf("%d devices and %d addresses are left", devices, addresses)
			}
		})
	}
}

// nameCredentials sets the Secret of a cluster: in its own object, or through the variable of its
// class.
func nameCredentials(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	var err error
	switch {
	case obj.GetKind() == "PacketCluster":
		err = unstructured.SetNestedField(obj.Object, "packet", "spec", "credentialsRef", "name")
	case obj.GetKind() == "Cluster" && obj.Object["spec"].(map[string]any)["topology"] != nil:
		var all []any
		if all, _, err = unstructured.NestedSlice(obj.Object, "spec", "topology", "variables"); err == nil {
			all = append(all, map[string]any{"name": "credentialsSecret", "value": "packet"})
			err = unstructured.SetNestedSlice(obj.Object, all, "spec", "topology", "variables")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// simulateBGP simulates the network of kube-vip: it moves the address to the machine with a
// session.
func simulateBGP(t *testing.T, c client.Client, sim simulated, ns string) {
	t.Helper()
	machines, packet := &infrav1.PacketMachineList{}, &infrav1.PacketCluster{}
	eventuallyCluster(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: variables["CLUSTER_NAME"]}, packet); err != nil {
			return err
		}
		if err := c.List(t.Context(), machines, client.InNamespace(ns), client.HasLabels{clusterv1.MachineControlPlaneLabel}); err != nil {
			return err
		}
		if len(machines.Items) != 1 {
			return fmt.Errorf("%d machines", len(machines.Items))
		}
		return wellIn(&machines.Items[0], infrav1.BGPSessionReady, infrav1.InstanceReady)
	})
	device := strings.TrimPrefix(*machines.Items[0].Spec.ProviderID, "equinixmetal://")
	var sessions struct {
		Sessions []struct {
			Family string `json:"address_family"`
		} `json:"bgp_sessions"`
	}
	sim.Get(t, "/devices/"+device+"/bgp/sessions", &sessions)
	if len(sessions.Sessions) != 1 || sessions.Sessions[0].Family != "ipv4" {
		t.Errorf("sessions: %+v", sessions)
	}
	sim.post(t, "/devices/"+device+"/ips", fmt.Sprintf(`{"address":%q}`, packet.Spec.ControlPlaneEndpoint.Host), nil)
}
