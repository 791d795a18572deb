package packet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/cluster"
	"github.com/drover-dev/drover/internal/controllers/packet/machine"
	"github.com/drover-dev/drover/internal/controllers/packet/template"
	"github.com/drover-dev/drover/internal/controllers/packet/vip"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/metal/driver/memory"
	"github.com/drover-dev/drover/internal/metal/fault"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/packettest"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	defer func() {
		if shared.stop != nil {
			shared.stop()
		}
	}()
	return kubetest.Main(m)
}

// shared is the metal service of this test package. Tests use separate projects.
var shared struct {
	sync.Once
	server *metal.Server
	web    *httptest.Server
	admin  string
	dir    string
	err    error
	stop   func()
}

func startMetal() error {
	var err error
	if shared.dir, err = os.MkdirTemp("", "packet-"); err != nil {
		return err
	}
	home := metal.Home{Dir: shared.dir}
	shared.server, err = metal.Open(context.Background(), metal.Options{Home: home, Driver: memory.New, DriverName: "memory", Speed: 10000})
	if err != nil {
		return err
	}
	shared.web = httptest.NewServer(shared.server.Handler())
	shared.stop = func() {
		shared.server.EndWaits()
		shared.web.Close()
		_ = shared.server.Close()
		_ = os.RemoveAll(shared.dir)
	}
	shared.admin, err = home.AdminToken()
	return err
}

// life is a cluster of control plane machines in its own project, with all its controllers. Nothing
// happens by itself: a test runs rounds, a minute apart.
type life struct {
	*packettest.World
	t      *testing.T
	prober *prober
	parts  []part
	rounds int

	// The objects at the end of the last round; nil if deleted.
	cluster     *infrav1.PacketCluster
	machines    []infrav1.PacketMachine
	provisioned bool
}

// part is a controller and the objects it reconciles in every round.
type part struct {
	reconciler reconcile.Reconciler
	objects    func() []string
}

// patience is the maximum number of rounds. Two faults at every call take far fewer. Rounds don't
// wait, but machines boot in real time, so they also get bootTime on a busy host.
const (
	patience = 60
	bootTime = time.Minute
)

// prober reports all machines but one as healthy.
type prober struct {
	mu   sync.Mutex
	dead string
}

func (p *prober) silence(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = address
}

func (p *prober) Healthy(_ context.Context, target vip.Target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !slices.Contains(target.Addresses, p.dead)
}

// newLife creates a project with an SSH key, and a world that uses it.
func newLife(t *testing.T) *life {
	t.Helper()
	t.Parallel()
	shared.Do(func() { shared.err = startMetal() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	l := &life{World: packettest.NewWorld(t), t: t, prober: &prober{}}
	var project struct{ ID, Token string }
	l.call(http.MethodPost, "/projects", map[string]string{"name": t.Name()}, &project)
	l.Project = project.ID
	l.Access.Default = access.Credentials{Token: project.Token, URL: shared.web.URL + "/metal/v1"}
	l.call(http.MethodPost, "/projects/"+l.Project+"/ssh-keys", map[string]string{"label": "mine", "key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGq9u0k8n1oQ2Xw1f4lJ5m6p7r8s9t0u1v2w3x4y5z6A mine"}, nil)
	l.control()
	return l
}

func (l *life) control() {
	w := l.World
	l.parts = []part{
		{&cluster.Controller{Client: w.Client, Access: w.Access, Events: w.Events, Clock: w.Clock, BGP: cluster.BGP{ASN: 65000}}, l.only("c")},
		{&template.Controller{Client: w.Client, Access: w.Access}, l.only("t")},
		{&machine.Controller{Client: w.Client, Access: w.Access, Events: w.Events, Clock: w.Clock, PollInterval: 5 * time.Minute}, l.machineNames},
		{&vip.Controller{Client: w.Client, Access: w.Access, Prober: l.prober, Events: w.Events, Clock: w.Clock}, l.only("c")},
	}
}

func (l *life) machineNames() []string {
	var names []string
	for i := range l.machines {
		names = append(names, l.machines[i].Name)
	}
	return names
}

func (l *life) only(name string) func() []string { return func() []string { return []string{name} } }

// call sends a request to metal as its administrator.
func (l *life) call(method, path string, body, into any) {
	l.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		l.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(l.t.Context(), method, shared.web.URL+path, strings.NewReader(string(data)))
	if err != nil {
		l.t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", shared.admin)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode >= http.StatusBadRequest {
		l.t.Fatalf("%s %s answered %s", method, path, res.Status)
	}
	if into == nil {
		return
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		l.t.Fatal(err)
	}
}

// fail adds a fault to the project and returns a function that counts its injections.
func (l *life) fail(f fault.Fault) (struck func() int) {
	l.t.Helper()
	faults := shared.server.Faults()
	added, err := faults.Add(l.Project, f)
	if err != nil {
		l.t.Fatal(err)
	}
	return func() int {
		all := faults.List(l.Project)
		return all[slices.IndexFunc(all, func(f fault.Fault) bool { return f.ID == added.ID })].Struck
	}
}

// options are the differences to one machine with the default VIP manager.
type options struct {
	machines int
	cluster  func(*infrav1.PacketCluster)
	machine  func(*infrav1.PacketMachineSpec)
}

// begin creates the objects of the cluster.
func (l *life) begin(o options) {
	l.t.Helper()
	owner := l.Cluster(l.t, "c", o.cluster)
	t := &infrav1.PacketMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: "t", OwnerReferences: owner.OwnerReferences}}
	t.Spec.Template.Spec = infrav1.PacketMachineSpec{OS: "ubuntu_24_04", MachineType: "c3.small.x86"}
	if err := l.Create(l.t.Context(), t); err != nil {
		l.t.Fatal(err)
	}
	for i := range o.machines {
		l.Machine(l.t, fmt.Sprintf("cp%d", i), packettest.MachineOptions{Cluster: "c", ControlPlane: true, Spec: o.machine})
	}
	l.observe()
}

// until runs rounds until done reports that nothing is missing.
func (l *life) until(what string, done func() string) {
	l.t.Helper()
	missing := ""
	begun := time.Now()
	for n := 0; n < patience || time.Since(begun) < bootTime; n++ {
		l.round()
		if missing = done(); missing == "" {
			return
		}
	}
	l.t.Fatalf("not after %d rounds: %s: %s", l.rounds, what, missing)
}

// round runs every controller once.
func (l *life) round() {
	l.t.Helper()
	l.rounds++
	for _, p := range l.parts {
		for _, name := range p.objects() {
			key := client.ObjectKey{Namespace: l.Namespace, Name: name}
			if _, err := p.reconciler.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				l.t.Fatalf("%T on %q: %v", p.reconciler, name, err)
			}
		}
	}
	l.observe()
	l.clusterAPI()
	l.Pass(time.Minute)
}

// observe records the objects, and checks the invariants of every round.
func (l *life) observe() {
	l.t.Helper()
	l.cluster = &infrav1.PacketCluster{}
	if l.Gone(l.t, "c", l.cluster) {
		l.cluster = nil
	}
	list := &infrav1.PacketMachineList{}
	if err := l.List(l.t.Context(), list, client.InNamespace(l.Namespace)); err != nil {
		l.t.Fatal(err)
	}
	l.machines = list.Items
	for _, m := range l.machines {
		if m.Status.FailureReason != nil || m.Status.FailureMessage != nil {
			l.t.Fatalf("round %d: machine %q is marked failed: %s", l.rounds, m.Name, ptr.Deref(m.Status.FailureMessage, ""))
		}
	}
}

// clusterAPI simulates Cluster API.
func (l *life) clusterAPI() {
	l.t.Helper()
	if l.provisioned || l.cluster == nil || !l.cluster.Status.Ready {
		return
	}
	owner := &clusterv1.Cluster{}
	l.Read(l.t, "c", owner)
	owner.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	if err := l.Status().Update(l.t.Context(), owner); err != nil {
		l.t.Fatal(err)
	}
	l.provisioned = true
}

// up returns what is missing until the cluster is ready.
func (l *life) up() string {
	if got := packettest.Condition(l.cluster, clusterv1.ReadyCondition); !strings.HasPrefix(got, "True") {
		return "cluster: " + got
	}
	for i := range l.machines {
		m := &l.machines[i]
		if got := packettest.Condition(m, clusterv1.ReadyCondition); !m.Status.Ready || !strings.HasPrefix(got, "True") {
			return "machine " + m.Name + ": " + got
		}
		if packettest.Condition(m, infrav1.BootstrapExecSucceeded) == "" {
			return "machine " + m.Name + " has not reported its boot"
		}
	}
	if l.movable() && l.cluster.Status.Endpoint.Machine == "" {
		return "endpoint: " + packettest.Condition(l.cluster, infrav1.EndpointServed)
	}
	t := &infrav1.PacketMachineTemplate{}
	l.Read(l.t, "t", t)
	if t.Status.Capacity == nil {
		return "the template has no capacity"
	}
	return ""
}

func (l *life) movable() bool { return l.cluster.Spec.VIPManager == infrav1.VIPManagerCPEM }

// moveEndpoint makes the machine with the address unresponsive, if another one could take it.
func (l *life) moveEndpoint() {
	l.t.Helper()
	if !l.movable() || len(l.machines) < 2 {
		return
	}
	holder := l.cluster.Status.Endpoint.Machine
	i := slices.IndexFunc(l.machines, func(m infrav1.PacketMachine) bool { return m.Name == holder })
	l.prober.silence(l.machines[i].Status.Addresses[0].Address)
	l.until("the address is on another machine", func() string {
		if now := l.cluster.Status.Endpoint.Machine; now == holder || now == "" {
			return packettest.Condition(l.cluster, infrav1.EndpointServed)
		}
		return ""
	})
}

// end deletes the machines, then the cluster, as Cluster API does.
func (l *life) end() {
	l.t.Helper()
	for i := range l.machines {
		l.delete(&l.machines[i])
	}
	l.until("the machines are gone", func() string { return strings.Join(l.machineNames(), ", ") })
	l.delete(l.cluster)
	l.until("the cluster is gone", func() string {
		if l.cluster != nil {
			return packettest.Condition(l.cluster, infrav1.NetworkInfrastructureReady)
		}
		return ""
	})
}

func (l *life) delete(obj client.Object) {
	l.t.Helper()
	if err := l.Delete(l.t.Context(), obj); err != nil {
		l.t.Fatal(err)
	}
}

// checkOwned checks the number of devices and addresses of the project.
func (l *life) checkOwned(devices, addresses int) {
	l.t.Helper()
	var d struct{ Devices []struct{ ID string } }
	l.call(http.MethodGet, "/projects/"+l.Project+"/devices", nil, &d)
	var a struct {
		Addresses []struct{ Management bool } `json:"ip_addresses"`
	}
	l.call(http.MethodGet, "/projects/"+l.Project+"/ips?types=public_ipv4", nil, &a)
	elastic := 0
	for _, ip := range a.Addresses {
		if !ip.Management {
			elastic++
		}
	}
	if len(d.Devices) != devices || elastic != addresses {
		l.t.Errorf("%d devices and %d addresses, want %d and %d", len(d.Devices), elastic, devices, addresses)
	}
}
