package manager_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// giveCredentials creates the Secret that the manifests of these tests refer to.
func (s simulated) giveCredentials(t *testing.T, c client.Client, ns string) {
	t.Helper()
	create(t, c, ns, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: packet}, stringData: {PACKET_API_KEY: %q, METAL_API_URL: %q}}`, s.Token, s.URL))
}

// createAll creates the objects of several manifests.
func createAll(t *testing.T, c client.Client, ns, manifests string) {
	t.Helper()
	for _, manifest := range strings.Split(manifests, "---\n") {
		create(t, c, ns, manifest)
	}
}

// clusterPatience is the timeout for whole clusters on a busy machine.
const clusterPatience = 4 * time.Minute

// eventuallyCluster is eventually with the timeout for whole clusters.
func eventuallyCluster(t *testing.T, f func() error) {
	t.Helper()
	kubetest.Await(t, clusterPatience, f)
}

// device is a device in the API.
type device struct {
	ID        string
	State     string
	Tags      []string
	UpdatedAt string `json:"updated_at"`
	Userdata  string
}

// events returns the number of events of a device.
func (s simulated) events(t *testing.T, id string) int {
	t.Helper()
	var out struct{ Meta struct{ Total int } }
	s.Get(t, "/devices/"+id+"/events", &out)
	return out.Meta.Total
}

// devicesOf returns the devices of the clusters in a namespace, by ID, each with everything that a
// modification changes.
func (s simulated) devicesOf(t *testing.T, ns string) map[string]string {
	t.Helper()
	var out struct{ Devices []device }
	s.Get(t, "/projects/"+s.Project+"/devices?per_page=1000", &out)
	found := map[string]string{}
	for _, d := range out.Devices {
		if slices.Contains(d.Tags, "capp:namespace:"+ns) {
			found[d.ID] = fmt.Sprintf("%s, %d events, changed at %s, tags %v", d.State, s.events(t, d.ID), d.UpdatedAt, d.Tags)
		}
	}
	return found
}

func TestClustersOfTheSameNameShareNothing(t *testing.T) {
	server, _ := ready(t)
	t.Parallel()
	sim := newSimulated(t)
	c := newClient(t, server.Config)
	names := []string{server.Namespace(t), server.Namespace(t)}
	for _, ns := range names {
		sim.giveCredentials(t, c, ns)
		createAll(t, c, ns, strings.ReplaceAll(oldManifests, "projectID: P", "projectID: "+sim.Project)+"\n---\n"+workers)
	}
	endpoints := map[string]bool{}
	for _, ns := range names {
		eventuallyCluster(t, func() error { return running(t, c, ns, 3) })
		eventuallyCluster(t, func() error { return sim.settled(t, c, ns) })
		packet := &infrav1.PacketCluster{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "packet"}, packet); err != nil {
			t.Fatal(err)
		}
		endpoints[packet.Spec.ControlPlaneEndpoint.Host] = true
	}
	first, second := sim.devicesOf(t, names[0]), sim.devicesOf(t, names[1])
	if len(first) != 3 || len(second) != 3 || len(endpoints) != 2 {
		t.Fatalf("%d and %d devices, endpoints %v", len(first), len(second), slices.Collect(maps.Keys(endpoints)))
	}
	for id := range first {
		if _, both := second[id]; both {
			t.Errorf("device %s is in both clusters", id)
		}
	}

	deleteCluster(t, c, names[0], "packet")
	if devices, addresses := sim.Left(t); devices != 3 || addresses != 1 {
		t.Errorf("got %d devices and %d addresses, want those of the other cluster", devices, addresses)
	}
	if diff := cmp.Diff(second, sim.devicesOf(t, names[1])); diff != "" {
		t.Errorf("the end of one cluster touched the devices of the other (-before +after):\n%s", diff)
	}
	if err := running(t, c, names[1], 3); err != nil {
		t.Error(err)
	}
	deleteCluster(t, c, names[1], "packet")
	if devices, addresses := sim.Left(t); devices != 0 || addresses != 0 {
		t.Errorf("got %d devices and %d addresses, want none", devices, addresses)
	}
}

// settled reports whether the devices of a cluster no longer change: the endpoint is assigned, and
// all userdata has been executed.
func (s simulated) settled(t *testing.T, c client.Client, ns string) error {
	t.Helper()
	packet := &infrav1.PacketCluster{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "packet"}, packet); err != nil {
		return err
	}
	if packet.Status.Endpoint == nil || packet.Status.Endpoint.Machine == "" {
		return fmt.Errorf("no machine holds the endpoint: %+v", packet.Status)
	}
	var out struct{ Devices []device }
	s.Get(t, "/projects/"+s.Project+"/devices?per_page=1000", &out)
	for _, d := range out.Devices {
		var events struct{ Events []struct{ Type string } }
		s.Get(t, "/devices/"+d.ID+"/events", &events)
		if len(events.Events) == 0 || events.Events[0].Type != "user-state" {
			return fmt.Errorf("device %s has not come to an end: %+v", d.ID, events.Events)
		}
	}
	return nil
}

// deleteCluster deletes a cluster and waits until it is gone.
func deleteCluster(t *testing.T, c client.Client, ns, name string) {
	t.Helper()
	cluster := &clusterv1.Cluster{}
	cluster.Namespace, cluster.Name = ns, name
	if err := c.Delete(t.Context(), cluster); err != nil {
		t.Error(err)
		return
	}
	eventuallyCluster(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err == nil {
			return fmt.Errorf("the cluster still exists: %+v", cluster.Status.Conditions)
		}
		return nil
	})
}

// post sends a request with the project's token.
func (s simulated) post(t *testing.T, path, body string, into any) {
	t.Helper()
	if err := s.send(t, http.MethodPost, path, body, into); err != nil {
		t.Fatal(err)
	}
}
