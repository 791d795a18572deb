package packet_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/contents"
	"github.com/drover-dev/drover/internal/controllers/packet/machine"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/metal/fault"
	"github.com/drover-dev/drover/internal/test/jumpclock"
)

const (
	// modelWorkers is how many machines live at once; they mostly wait for their devices.
	modelWorkers = 64
	// lateness is how long a request may take to arrive after its client gave up: less than the
	// controller waits before it orders again.
	lateness = 40 * time.Second
)

// TestOneDevicePerMachine runs machines through their lives against metal with simulated machines,
// while requests and responses are lost, delayed, cut off and rejected at random, devices fail,
// managers are killed in the middle of a reconcile, and the clock is set a year forward or back. At
// no time does a machine have two devices; when the faults end, it has one; when it is deleted, it
// has none.
func TestOneDevicePerMachine(t *testing.T) {
	t.Parallel()
	shared.Do(func() { shared.err = startMetal() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	runs, first := modelRuns, firstSeed()
	if testing.Short() {
		runs /= 10
	}
	project, token := modelProject(t)
	kube := modelPlane(t)
	var workers sync.WaitGroup
	var struck sync.Map
	for worker := range modelWorkers {
		workers.Go(func() {
			for seed := first + worker; seed < first+runs && !t.Failed(); seed += modelWorkers {
				m := newModel(seed, kube, access.Credentials{Token: token, URL: "http://127.0.0.1/metal/v1"})
				m.project = project
				if err := m.live(t.Context()); err != nil {
					t.Errorf("seed %d: %v\n%s", seed, err, strings.Join(m.trace, "\n"))
				}
				for name := range m.struck {
					struck.Store(name, true)
				}
			}
		})
	}
	workers.Wait()
	injected := []string{lateFault.name, modelJump, modelKill}
	for _, f := range modelFaults {
		injected = append(injected, f.name)
	}
	for _, name := range injected {
		if _, found := struck.Load(name); !found {
			t.Errorf("the fault %q was never injected: this proves nothing", name)
		}
	}
}

// firstSeed follows from the order of the tests, so that other code gets other faults, and the seed
// that a failed run prints repeats both.
func firstSeed() int {
	n, _ := strconv.Atoi(flag.Lookup("test.shuffle").Value.String())
	return n % 1_000_000 * 10_000
}

// modelPlane is a management plane with only the kinds that the controller of machines uses, which
// makes it fast.
func modelPlane(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Secret{})
	scheme.AddKnownTypes(clusterv1.GroupVersion, &clusterv1.Cluster{}, &clusterv1.Machine{})
	scheme.AddKnownTypes(infrav1.GroupVersion, &infrav1.PacketCluster{}, &infrav1.PacketMachine{})
	for _, group := range []schema.GroupVersion{corev1.SchemeGroupVersion, clusterv1.GroupVersion, infrav1.GroupVersion} {
		metav1.AddToGroupVersion(scheme, group)
	}
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	return fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).
		WithStatusSubresource(&infrav1.PacketMachine{}, &clusterv1.Cluster{}).Build()
}

func modelProject(t *testing.T) (id, token string) {
	t.Helper()
	var project struct{ ID, Token string }
	l := &life{t: t}
	l.call(http.MethodPost, "/projects", map[string]string{"name": t.Name()}, &project)
	return project.ID, project.Token
}

// model is the life of one machine.
type model struct {
	random    *rand.Rand
	kube      client.Client
	clock     *jumpclock.Clock
	secret    access.Credentials
	project   string
	namespace string
	faulty    bool
	// manager is what runs; nil after it was killed.
	manager *machine.Controller
	// alive counts the operations until the current manager is killed; negative is immortal.
	alive int
	// late are requests that have yet to arrive.
	late   []lateRequest
	struck map[string]bool
	trace  []string
}

type lateRequest struct {
	request *http.Request
	due     time.Duration // of the time that has passed
}

var (
	errModelKilled = errors.New("the manager was killed")
	errModelLost   = errors.New("connection reset by peer")
)

func newModel(seed int, kube client.Client, secret access.Credentials) *model {
	return &model{
		random: rand.New(rand.NewPCG(uint64(seed), 1)), kube: kube, secret: secret, namespace: fmt.Sprintf("run-%d", seed), alive: -1,
		clock: jumpclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), struck: map[string]bool{},
	}
}

// live runs the machine from its creation until it is gone.
func (m *model) live(ctx context.Context) error {
	if err := m.create(ctx); err != nil {
		return err
	}
	for range max(0, m.random.IntN(5)-2) { // at most as many as a machine survives
		f := fault.Fault{Kind: fault.FailProvisioning, Hostname: m.namespace, Count: 1, Status: pick(m.random, 0, http.StatusNotFound)}
		if _, err := shared.server.Faults().Add(m.project, f); err != nil {
			return err
		}
	}
	if err := m.phase(ctx, m.ready); err != nil {
		return fmt.Errorf("creating: %w", err)
	}
	if n, err := m.devices(ctx); err != nil || len(n) != 1 {
		return fmt.Errorf("a ready machine has devices %v, %w", n, err)
	}
	if err := m.kube.Delete(ctx, &infrav1.PacketMachine{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: m.namespace}}); err != nil {
		return err
	}
	if err := m.phase(ctx, m.gone); err != nil {
		return fmt.Errorf("deleting: %w", err)
	}
	if n, err := m.devices(ctx); err != nil || len(n) != 0 || len(m.late) != 0 {
		return fmt.Errorf("a deleted machine has devices %v and %d late requests, %w", n, len(m.late), err)
	}
	return nil
}

// phase reconciles with faults, and then without until done.
func (m *model) phase(ctx context.Context, done func(context.Context) (bool, error)) error {
	m.faulty = true
	for range m.random.IntN(12) {
		if err := m.step(ctx, time.Duration(m.random.IntN(30))*time.Second); err != nil {
			return err
		}
	}
	m.faulty = false
	wait := time.Millisecond
	for end := time.Now().Add(bootTime); time.Now().Before(end); time.Sleep(wait) {
		if err := m.step(ctx, time.Duration(m.random.IntN(60))*time.Second); err != nil {
			return err
		}
		if ok, err := done(ctx); ok || err != nil {
			return err
		}
		wait = min(2*wait, 200*time.Millisecond) // simulated machines boot in real time
	}
	return errors.New("not done after the faults ended")
}

// step lets time pass and reconciles the machine once, with a manager that may be killed.
func (m *model) step(ctx context.Context, pass time.Duration) error {
	m.clock.Pass(pass)
	m.arrive()
	m.alive = -1
	if m.faulty && m.random.IntN(4) == 0 {
		m.alive = 1 + m.random.IntN(7)
	}
	if m.faulty && m.random.IntN(4) == 0 {
		m.strike(modelJump)
		m.clock.Jump(pick(m.random, modelYear, -modelYear))
	}
	m.start()
	_, err := m.manager.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: m.namespace, Name: m.namespace}})
	m.note("reconciled: %v", err)
	if m.alive == 0 {
		m.strike(modelKill)
		m.manager = nil
	}
	alive, err := m.devices(ctx)
	if err == nil && len(alive) > 1 {
		err = fmt.Errorf("the machine has %d devices: %v", len(alive), alive)
	}
	return err
}

// start starts a manager unless one runs.
func (m *model) start() {
	if m.manager != nil {
		return
	}
	source := &access.Source{Secrets: contents.New(m.kube, m.kube), Default: m.secret, Clock: m.clock.Steady(), HTTP: &http.Client{Transport: m}}
	m.manager = &machine.Controller{Client: faultyClient{m.kube, m}, Access: source, Events: &record.FakeRecorder{}, Clock: m.clock, PollInterval: time.Minute}
}

// strike counts a fault that is injected.
func (m *model) strike(name string) {
	m.struck[name] = true
	m.note("%s", name)
}

func (m *model) note(format string, args ...any) {
	m.trace = append(m.trace, m.clock.Now().Format("2006 15:04:05 ")+fmt.Sprintf(format, args...))
}

// arrive executes the late requests that are due.
func (m *model) arrive() {
	m.late = slices.DeleteFunc(m.late, func(l lateRequest) bool {
		if l.due > m.clock.Passed() {
			return false
		}
		m.note("a late %s arrives: %d", l.request.Method, m.execute(l.request).Code)
		return true
	})
}

// execute sends a request to metal.
func (m *model) execute(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat)) // as a server does
	shared.server.Handler().ServeHTTP(w, r.Clone(context.Background()))
	return w
}

// devices lists the machine's devices that are not being deleted.
func (m *model) devices(ctx context.Context) ([]string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/projects/"+m.project+"/devices?exclude=userdata&tag=capp:namespace:"+m.namespace, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Auth-Token", m.secret.Token)
	var out struct {
		Devices []struct{ ID, State string }
	}
	if w := m.execute(r); w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &out) != nil {
		return nil, fmt.Errorf("listing devices: %d %s", w.Code, w.Body)
	}
	var alive []string
	for _, d := range out.Devices {
		if d.State != "deprovisioning" {
			alive = append(alive, d.ID)
		}
	}
	return alive, nil
}

func (m *model) ready(ctx context.Context) (bool, error) {
	pm := &infrav1.PacketMachine{}
	err := m.kube.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: m.namespace}, pm)
	return pm.Status.Ready, err
}

func (m *model) gone(ctx context.Context) (bool, error) {
	err := m.kube.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: m.namespace}, &infrav1.PacketMachine{})
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// create creates the objects of the machine and its cluster.
func (m *model) create(ctx context.Context) error {
	meta := func(labels map[string]string, owner ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: m.namespace, Name: m.namespace, UID: types.UID("uid-" + m.namespace), Labels: labels, OwnerReferences: owner}
	}
	labels := map[string]string{clusterv1.ClusterNameLabel: m.namespace}
	cluster := &clusterv1.Cluster{ObjectMeta: meta(nil)}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketCluster", Name: m.namespace}
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	owner := &clusterv1.Machine{ObjectMeta: meta(labels)}
	owner.Spec.ClusterName, owner.Spec.Bootstrap.DataSecretName = m.namespace, ptr.To(m.namespace)
	ref := metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: owner.Name, UID: owner.UID}
	for _, obj := range []client.Object{
		cluster, owner, &corev1.Secret{ObjectMeta: meta(nil), Data: map[string][]byte{"value": []byte("#!/bin/sh\n")}},
		&infrav1.PacketCluster{ObjectMeta: meta(labels), Spec: infrav1.PacketClusterSpec{ProjectID: m.project, Metro: "da", VIPManager: infrav1.VIPManagerCPEM}},
		&infrav1.PacketMachine{ObjectMeta: meta(labels, ref), Spec: infrav1.PacketMachineSpec{OS: "ubuntu_24_04", MachineType: "c3.small.x86"}},
	} {
		if err := m.kube.Create(ctx, obj); err != nil {
			return err
		}
	}
	return m.kube.Status().Update(ctx, cluster)
}
