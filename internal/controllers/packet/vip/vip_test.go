package vip

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/packettest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// fakeProber returns the health of machines by address.
type fakeProber struct {
	mu    sync.Mutex
	dead  []string
	asked []string
}

func (p *fakeProber) Healthy(_ context.Context, target Target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, target.Addresses...)
	return !slices.ContainsFunc(target.Addresses, func(a string) bool { return slices.Contains(p.dead, a) })
}

type world struct {
	*packettest.World
	*Controller
	prober *fakeProber
	ip     packettest.Address
}

// newWorld creates a cluster "c" with an address and n active control plane machines cp0, cp1, ...
// with the addresses 10.9.0.N. Tests run in parallel.
func newWorld(t *testing.T, n int) *world {
	t.Helper()
	t.Parallel()
	p := packettest.NewWorld(t)
	w := &world{World: p, prober: &fakeProber{}}
	w.Controller = &Controller{Client: p.Client, Access: p.Access, Prober: w.prober, Events: p.Events, Clock: p.Clock}
	w.ip = p.API.AddAddress(packettest.Address{Project: p.Project})
	c := p.ReadyCluster(t, "c", func(c *infrav1.PacketCluster) { c.Spec.ControlPlaneEndpoint.Host = w.ip.Address })
	c.Status.Endpoint = &infrav1.EndpointStatus{Address: w.ip.Address, ReservationID: w.ip.ID, Owned: true}
	if err := p.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		w.addMachine(t, string(rune('0'+i)))
	}
	return w
}

func (w *world) addMachine(t *testing.T, suffix string) {
	t.Helper()
	device := w.API.AddDevice(packettest.Device{Project: w.Project, State: "active"})
	m := w.Machine(t, "cp"+suffix, packettest.MachineOptions{
		Cluster: "c", ControlPlane: true, Spec: func(s *infrav1.PacketMachineSpec) { s.ProviderID = ptr.To("equinixmetal://" + device) },
	})
	m.Status.InstanceStatus = ptr.To(infrav1.InstanceActive)
	m.Status.Addresses = []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "10.9.0." + suffix}, {Type: clusterv1.MachineExternalIP, Address: w.ip.Address}}
	if err := w.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func (w *world) reconcile(t *testing.T) (*infrav1.PacketCluster, ctrl.Result) {
	t.Helper()
	result, err := w.Controller.Reconcile(t.Context(), ctrl.Request{NamespacedName: ctrlKey(w, "c")})
	if err != nil {
		t.Fatal(err)
	}
	c := &infrav1.PacketCluster{}
	w.Read(t, "c", c)
	return c, result
}

// holder returns the machine with the address according to the API.
func (w *world) holder(t *testing.T) string {
	t.Helper()
	device := w.API.Addresses(w.Project)[0].Device
	list := &infrav1.PacketMachineList{}
	if err := w.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if device != "" && deviceOf(&list.Items[i]) == device {
			return list.Items[i].Name
		}
	}
	return ""
}

func TestFirstMachineGetsTheAddress(t *testing.T) {
	w := newWorld(t, 1)
	c, result := w.reconcile(t)
	if w.holder(t) != "cp0" || c.Status.Endpoint.Machine != "cp0" || c.Status.Endpoint.MovedAt == nil {
		t.Errorf("holder %q, status %+v", w.holder(t), c.Status.Endpoint)
	}
	if result.RequeueAfter == 0 {
		t.Error("no requeue")
	}
	c, _ = w.reconcile(t)
	if got := packettest.Condition(c, infrav1.EndpointServed); !strings.HasPrefix(got, "True EndpointHealthy") {
		t.Errorf("EndpointServed is %q", got)
	}
}

// TestAddressOfAForeignDeviceStaysThere: the tag of the former provider names only the cluster, and
// creators choose the names of clusters.
func TestAddressOfAForeignDeviceStaysThere(t *testing.T) {
	w := newWorld(t, 1)
	foreign := w.API.AddDevice(packettest.Device{Project: w.Project, State: "active"})
	w.API.ChangeAddress(w.ip.ID, func(a *packettest.Address) {
		a.Tags, a.Assignment, a.Device = []string{"cluster-api-provider-packet:cluster-id:c"}, "assignment", foreign
	})
	c, _ := w.reconcile(t)
	if got := w.API.Addresses(w.Project)[0].Device; got != foreign {
		t.Errorf("the address moved from the foreign device to %q", got)
	}
	if got := packettest.Condition(c, infrav1.EndpointServed); !strings.HasPrefix(got, "False AddressInUse: Address "+w.ip.Address) {
		t.Errorf("EndpointServed is %q", got)
	}
}

func TestAddressOfTheFormerProviderMovesBetweenOwnMachines(t *testing.T) {
	w := newWorld(t, 2)
	w.reconcile(t)
	w.API.ChangeAddress(w.ip.ID, func(a *packettest.Address) { a.Tags = []string{"cluster-api-provider-packet:cluster-id:c"} })
	w.prober.dead = []string{"10.9.0.0"}
	for range 4 {
		w.Pass(time.Minute)
		w.reconcile(t)
	}
	if w.holder(t) != "cp1" {
		t.Errorf("holder %q", w.holder(t))
	}
}

func TestFailoverMovesTheAddress(t *testing.T) {
	w := newWorld(t, 3)
	w.reconcile(t)
	if w.holder(t) != "cp0" {
		t.Fatalf("holder %q", w.holder(t))
	}
	w.Pass(time.Minute)
	w.reconcile(t)
	w.prober.dead = []string{"10.9.0.0"}
	start, passed := w.World.Clock.Now(), time.Duration(0)
	for w.holder(t) == "cp0" {
		_, result := w.reconcile(t)
		w.Pass(result.RequeueAfter)
		if passed = w.World.Clock.Now().Sub(start); passed > time.Minute {
			t.Fatal("the address was not moved")
		}
	}
	if passed+patience*probeTimeout > 12*time.Second {
		t.Errorf("took %s and the time of two checks", passed)
	}
	w.prober.dead = nil
	for range 5 {
		w.Pass(30 * time.Second)
		w.reconcile(t)
	}
	if w.holder(t) != "cp1" {
		t.Errorf("holder is %q, want it to stay where it is well", w.holder(t))
	}
}

func TestIdleEndpointMakesNoRequests(t *testing.T) {
	w := newWorld(t, 3)
	w.reconcile(t)
	before, _ := w.reconcile(t)
	w.API.Requests()
	w.prober.asked = nil
	w.Pass(time.Minute)
	after, _ := w.reconcile(t)
	if before.ResourceVersion != after.ResourceVersion || len(w.API.Requests()) > 0 {
		t.Error("the object was written or the API was called, want neither")
	}
	if len(w.prober.asked) != 1 {
		t.Errorf("checked %v, want the holder only, at its own address", w.prober.asked)
	}
}

func TestInterruptedMoveIsCompleted(t *testing.T) {
	w := newWorld(t, 2)
	w.reconcile(t)
	w.reconcile(t)
	w.prober.dead = []string{"10.9.0.0"}
	w.API.Fail(packettest.Fault{Method: "POST", Path: "/ips", Times: 1, Status: 500})
	for range 4 {
		w.Pass(time.Minute)
		w.reconcile(t)
	}
	if w.holder(t) != "cp1" {
		t.Errorf("holder %q", w.holder(t))
	}
}

func TestRestartedManagerObservesTheHolder(t *testing.T) {
	w := newWorld(t, 2)
	w.reconcile(t)
	w.memory = memory{}
	w.API.Requests()
	c, _ := w.reconcile(t)
	if len(w.API.Requests()) == 0 || c.Status.Endpoint.Machine != "cp0" {
		t.Errorf("status %+v", c.Status.Endpoint)
	}
}

func TestOtherVIPManagersAreSkipped(t *testing.T) {
	w := newWorld(t, 1)
	c := &infrav1.PacketCluster{}
	w.Read(t, "c", c)
	c.Spec.VIPManager = infrav1.VIPManagerKubeVIP
	if err := w.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t)
	if w.holder(t) != "" {
		t.Error("the address was assigned")
	}
}

func TestUnavailableAPIKeepsTheEndpoint(t *testing.T) {
	w := newWorld(t, 2)
	w.reconcile(t)
	w.reconcile(t)
	w.memory = memory{}
	w.API.Fail(packettest.Fault{Status: 500})
	for range 3 {
		c, result := w.reconcile(t)
		if got := packettest.Condition(c, infrav1.EndpointServed); !strings.HasPrefix(got, "True EndpointHealthy") || c.Status.Endpoint.Machine != "cp0" {
			t.Errorf("EndpointServed is %q, status %+v", got, c.Status.Endpoint)
		}
		w.Pass(result.RequeueAfter)
	}
	if asked := w.API.Requests(); len(asked) > 8 {
		t.Errorf("got requests %v to an unavailable API, want them to back off", asked)
	}
	w.prober.dead = []string{"10.9.0.0"}
	var c *infrav1.PacketCluster
	for range 4 {
		w.Pass(time.Minute)
		c, _ = w.reconcile(t)
	}
	if got := packettest.Condition(c, infrav1.EndpointServed); !strings.HasPrefix(got, "False APIUnavailable: Moving the endpoint failed: ") {
		t.Errorf("got EndpointServed %q while the address can't be moved", got)
	}
	w.API.Heal()
	w.Pass(time.Minute)
	w.reconcile(t)
	if w.holder(t) != "cp1" {
		t.Errorf("holder is %q", w.holder(t))
	}
}

func TestStaleStatusDoesNotLoseTheHolder(t *testing.T) {
	w := newWorld(t, 3)
	w.reconcile(t)
	w.prober.dead = []string{"10.9.0.0"}
	for w.holder(t) == "cp0" {
		w.Pass(time.Minute)
		w.reconcile(t)
	}
	w.prober.dead = nil
	forget := func() {
		c := &infrav1.PacketCluster{}
		w.Read(t, "c", c)
		c.Status.Endpoint.DeviceID, c.Status.Endpoint.Machine = "", "" // as in a stale cache
		if err := w.Status().Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	forget()
	if c, _ := w.reconcile(t); w.holder(t) != "cp1" || c.Status.Endpoint.Machine != "cp1" {
		t.Errorf("the address is on %q, status %+v", w.holder(t), c.Status.Endpoint)
	}

	forget()
	w.memory = memory{}
	w.API.Fail(packettest.Fault{Status: 500})
	w.reconcile(t)
	w.API.Heal()
	for range 3 { // the API is not queried for a while, and the holder is unknown
		w.reconcile(t)
	}
	if w.holder(t) != "cp1" {
		t.Errorf("the address was moved to %q while its holder was unknown", w.holder(t))
	}
}

func TestMovedClusterKeepsItsAddress(t *testing.T) {
	w := newWorld(t, 3)
	w.reconcile(t)
	w.memory = memory{}
	c := &infrav1.PacketCluster{}
	w.Read(t, "c", c)
	c.Status.Endpoint.DeviceID, c.Status.Endpoint.Machine, c.Status.Endpoint.MovedAt = "", "", nil
	m := &infrav1.PacketMachine{}
	w.Read(t, "cp0", m)
	known := m.Status
	m.Status = infrav1.PacketMachineStatus{}
	for _, obj := range []client.Object{c, m} {
		if err := w.Status().Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	w.API.Requests()
	w.reconcile(t)
	m.Status = known
	if err := w.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t)
	for _, asked := range w.API.Requests() {
		if !strings.HasPrefix(asked, "GET ") {
			t.Errorf("the address was touched: %s", asked)
		}
	}
}
