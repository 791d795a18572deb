package manager_test

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestEveryFlavorBecomesACluster applies the templates as clusterctl renders them with upstream's
// variables.
func TestEveryFlavorBecomesACluster(t *testing.T) {
	server, _ := ready(t)
	t.Parallel()
	for _, tc := range []struct {
		name  string
		files []string
	}{
		{name: "the default", files: []string{"cluster-template.yaml"}},
		{name: "kube-vip", files: []string{"cluster-template-kube-vip.yaml"}},
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
				t.Errorf("got %d devices and %d addresses, want none", devices, addresses)
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
