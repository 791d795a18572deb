package metal

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/tags"
)

// moverTags returns the tags of a control plane machine of a cluster.
func moverTags(cluster, name string, user ...string) []string {
	return tags.Device{
		Machine: tags.Machine{Namespace: "farm", Cluster: cluster, Name: name, Claim: name}, Role: "master", Endpoint: true, User: user,
	}.Encode()
}

func (w *world) reserveEndpoint(labels []string) api.IPReservation {
	w.t.Helper()
	var b api.IPReservation
	w.must(http.StatusCreated, "POST", "/projects/"+w.project+"/ips", map[string]any{"type": "public_ipv4", "quantity": 1, "metro": "da", "tags": labels}, &b)
	return b
}

func (w *world) order(labels []string) api.Device {
	w.t.Helper()
	var d api.Device
	w.must(http.StatusCreated, "POST", "/projects/"+w.project+"/devices", map[string]any{
		"hostname": "m", "plan": "c3.small.x86", "metro": "da", "operating_system": "ubuntu_24_04", "tags": labels,
	}, &d)
	return d
}

// endpointOf waits for the driver's machine of a device, and returns the address that it shares.
func (w *world) endpointOf(f *fakeDriver, id string) netip.Addr {
	w.t.Helper()
	var m driver.Machine
	w.eventually("the driver has the machine", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		m = f.machines[id]
		return m.ID != ""
	})
	return m.Endpoint
}

func newMovers(t *testing.T) (*world, *fakeDriver) {
	t.Helper()
	f := newFake()
	f.networks = driver.Networks{
		Public: netip.MustParsePrefix("198.18.0.0/22"), Private: netip.MustParsePrefix("10.128.0.0/22"), Flat: true, Endpoints: true,
	}
	return openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: f.new, DriverName: "fake"}), f
}

func TestControlPlaneMachinesShareTheEndpoint(t *testing.T) {
	w, f := newMovers(t)
	herd := w.reserveEndpoint(tags.Endpoint{Namespace: "farm", Cluster: "herd"}.Encode())
	w.reserveEndpoint(tags.Endpoint{Namespace: "barn", Cluster: "herd"}.Encode())
	w.reserveEndpoint(tags.Etcd{Namespace: "farm", Cluster: "flock", Name: "etcd"}.Encode(0))
	w.reserveEndpoint(tags.Endpoint{Cluster: "flock"}.Encode()[:1])
	for name, tt := range map[string]struct {
		tags []string
		want string
	}{
		"a machine of the cluster":              {moverTags("herd", "a"), herd.Address},
		"a machine of a cluster without one":    {moverTags("flock", "b"), ""},
		"a machine whose creator claims it":     {moverTags("flock", "c", "capp:cluster-id:herd"), ""},
		"a machine without tags":                {nil, ""},
		"a worker":                              {tags.Device{Machine: tags.Machine{Namespace: "farm", Cluster: "herd", Name: "d"}, Role: "node"}.Encode(), ""},
		"a machine that Drover did not mark so": {moverTags("herd", "e")[:5], ""},
	} {
		got := ""
		if a := w.endpointOf(f, w.order(tt.tags).ID); a.IsValid() {
			got = a.String()
		}
		if got != tt.want {
			t.Errorf("%s shares %q, want %q", name, got, tt.want)
		}
	}
}

func TestEndpointOfMachinesIsNotReleased(t *testing.T) {
	w, f := newMovers(t)
	b := w.reserveEndpoint(tags.Endpoint{Namespace: "farm", Cluster: "herd"}.Encode())
	d := w.order(moverTags("herd", "a"))
	if a := w.endpointOf(f, d.ID); a.String() != b.Address {
		t.Fatalf("the machine shares %s, want %s", a, b.Address)
	}
	message := w.refused(http.StatusUnprocessableEntity, "DELETE", "/ips/"+b.ID, nil)
	if !strings.Contains(message, "endpoint") {
		t.Errorf("releasing the address: %s", message)
	}
	w.must(http.StatusNoContent, "DELETE", "/devices/"+d.ID+"?force_delete=true", nil, nil)
	w.must(http.StatusNoContent, "DELETE", "/ips/"+b.ID, nil, nil)
}

func TestSimulatedMachinesDoNotShareTheEndpoint(t *testing.T) {
	f := newFake()
	w := openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Driver: f.new, DriverName: "fake"})
	w.reserveEndpoint(tags.Endpoint{Namespace: "farm", Cluster: "herd"}.Encode())
	if a := w.endpointOf(f, w.order(moverTags("herd", "a")).ID); a.IsValid() {
		t.Errorf("a machine without an agent shares %s", a)
	}
}
