package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/access"
	packet "github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/tags"
	"github.com/drover-dev/drover/internal/model/backup/schedule"
	"github.com/drover-dev/drover/internal/model/backup/settings"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/operate/recovery"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/managertest"
	"github.com/drover-dev/drover/internal/test/metaltest"
)

// sheepSpec is a workload cluster of two machines.
const sheepSpec = `
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata: {name: sheep, namespace: default}
spec: {}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata: {name: sheep, namespace: default}
spec:
  kubernetesVersion: "1.36"
  management: false
  controlPlaneConfiguration: {count: 1}
  workerNodeGroupConfigurations:
  - {name: md-0, count: 1}
  datacenterRef: {kind: DockerDatacenterConfig, name: sheep}
  clusterNetwork:
    cniConfig: {cilium: {}}
    pods: {cidrBlocks: [192.168.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}`

// recordedMetal is a metal service with simulated machines, which records the calls that change
// something.
type recordedMetal struct {
	metaltest.Metal
	t   *testing.T
	api *packet.Client

	mu      sync.Mutex
	changes []string
}

func newRecordedMetal(t *testing.T) *recordedMetal {
	t.Helper()
	m := &recordedMetal{Metal: metaltest.New(t), t: t}
	behind, err := url.Parse(m.URL)
	m.must(err)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: behind.Scheme, Host: behind.Host})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.note(r)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	m.URL = front.URL + behind.Path
	m.api, err = packet.New(packet.Options{URL: m.URL, Token: m.Token, UserAgent: "test"})
	m.must(err)
	return m
}

func (m *recordedMetal) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// note records a call, unless it only reads or stores a backup.
func (m *recordedMetal) note(r *http.Request) {
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/backups/") {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes = append(m.changes, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/metal/v1"))
}

// changed returns the changes since the last call.
func (m *recordedMetal) changed() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.changes
	m.changes = nil
	return out
}

// devices describes each machine of a cluster by its ID: when it was created, and all that ever
// happened to it, such as that it was rebooted or reinstalled.
func (m *recordedMetal) devices(cluster string) map[string]string {
	m.t.Helper()
	all, err := m.api.Devices(m.t.Context(), m.Project)
	m.must(err)
	out := map[string]string{}
	for _, d := range all {
		if tags.ParseMachine(d.Tags).Cluster != cluster {
			continue
		}
		events, err := m.api.Events(m.t.Context(), d.ID)
		m.must(err)
		out[d.ID] = fmt.Sprintf("%s created %s, %s: %v", d.Hostname, d.CreatedAt, d.State, events)
	}
	return out
}

// order orders a machine of a cluster.
func (m *recordedMetal) order(cluster, name string) string {
	m.t.Helper()
	machine := tags.Machine{Namespace: anywherev1.SystemNamespace, Cluster: cluster, Name: name, Claim: name}
	d, err := m.api.OrderDevice(m.t.Context(), m.Project, packet.DeviceOrder{
		Metro: "da", Hostname: name, Plan: "c3.small.x86", OperatingSystem: "ubuntu_24_04", Tags: tags.Device{Machine: machine, Role: "master"}.Encode(),
	})
	m.must(err)
	return d.ID
}

// herd is a management cluster: an API server, and a manager that has only its own privileges.
type herd struct {
	*testing.T
	client.Client

	server  *kubetest.Server
	manager *kubetest.Process
}

func newHerd(t *testing.T, m *recordedMetal) *herd {
	t.Helper()
	webhook, health := kubetest.FreeAddress(t), kubetest.FreeAddress(t)
	h := &herd{T: t, server: kubetest.Start(t)}
	h.must(install.Apply(t.Context(), h.server.Config, install.Options{WebhookURL: "https://" + webhook}))
	connected, err := inspect.Connect(h.server.Config)
	h.must(err)
	h.Client = connected.Client
	h.must(h.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: anywherev1.SystemNamespace, Name: anywherev1.LocalCredentials,
			Annotations: map[string]string{anywherev1.CredentialsNamespacesAnnotation: anywherev1.AllNamespaces},
		},
		StringData: map[string]string{access.TokenKey: m.Token, access.URLKey: m.URL, bootstrap.ProjectKey: m.Project},
	}))
	_, charts := managertest.Charts(t)
	h.manager = managertest.Start(t, managertest.Checked(t, append([]string{
		"--kubeconfig=" + kubetest.Kubeconfig(t, managertest.Identity(t, h.server)), "--health-addr=" + health, "--metrics-addr=0",
		"--webhook-addr=" + webhook, "--install=false", "--v=3", "--log-format=json",
	}, charts...)))
	h.until("the manager is ready", func() error {
		if !managertest.Ready(health) {
			return fmt.Errorf("not ready")
		}
		return nil
	})
	return h
}

func (h *herd) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *herd) until(what string, is func() error) {
	h.Helper()
	took := kubetest.Await(h, kubetest.Patience, func() error {
		if err := is(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
	h.Logf("%s after %s", what, took.Round(10*time.Millisecond))
}

func (h *herd) apply(c *spec.Config) {
	h.Helper()
	for _, o := range c.Objects() {
		h.must(h.Create(h.Context(), o))
	}
}

// ready waits until cluster sheep is ready with its current spec.
func (h *herd) ready(workers string) {
	h.Helper()
	h.until("sheep is ready with workers "+workers, func() error {
		c := &anywherev1.Cluster{}
		if err := h.Get(h.Context(), client.ObjectKey{Namespace: "default", Name: "sheep"}, c); err != nil {
			return err
		}
		s := c.Status
		if !apimeta.IsStatusConditionTrue(s.Conditions, anywherev1.Ready) || s.ReconciledGeneration != c.Generation || s.ControlPlane != "1/1" || s.Workers != workers {
			return fmt.Errorf("generation %d of %d, %s, %s: %s %v", s.ReconciledGeneration, c.Generation, s.ControlPlane, s.Workers, ptr.Deref(s.FailureMessage, ""), s.Conditions)
		}
		return nil
	})
}

// backUp makes the manager back the management cluster up to the metal service, and returns what
// opens the backup.
func (h *herd) backUp(m *recordedMetal, files Files) recovery.Source {
	h.Helper()
	authority, err := pki.NewAuthority("shepherd", time.Now(), time.Hour)
	h.must(err)
	h.must(h.Create(h.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: "shepherd-ca"},
		Data:       map[string][]byte{"tls.crt": authority.PEM(), "tls.key": authority.Key},
	}))
	recipient, err := files.recipient()
	h.must(err)
	h.must(bootstrap.ScheduleBackups(h.Context(), h.server.Config, settings.Settings{
		Schedule: schedule.Schedule{Every: time.Hour, Keep: 2}, Location: settings.Metal, Recipients: []string{recipient},
	}))
	from := recovery.Source{Storage: metal.Home{Dir: m.Home}.Backups(m.Project, "shepherd"), Cluster: "shepherd", Signers: authority.Certs}
	h.until("there is a backup", func() error {
		if all, err := from.Storage.List(h.Context()); err != nil || len(all) == 0 {
			status, statusErr := bootstrap.BackupStatus(h.Context(), h.server.Config)
			return fmt.Errorf("%d backups, %+v: %w", len(all), status, errors.Join(err, statusErr, errors.New("none yet")))
		}
		return nil
	})
	identities, err := files.identities()
	h.must(err)
	for _, i := range identities {
		from.Identities = append(from.Identities, i)
	}
	return from
}

// isOn makes the kubeconfig of the management cluster that of a herd.
func (x *twoSides) isOn(h *herd) {
	x.Helper()
	data, err := clientcmd.Write(*kubetest.AsKubeconfig(h.server.Config))
	h.must(err)
	h.must(x.files.write(x.files.Kubeconfig(), data))
}

// step runs parts of a recovery as the phases of a plan that is resumed.
func (x *twoSides) step(r *Recovery, run ...func(context.Context, *phase.Progress) error) error {
	x.Helper()
	plan := &phase.Plan{Command: recoverCommand, Cluster: "shepherd"}
	for i, one := range run {
		plan.Phases = append(plan.Phases, phase.Phase{Name: fmt.Sprintf("part-%d", i), Run: one})
	}
	_, err := runFree(x.Context(), plan, x.files.Record(), func(e phase.Event) {
		if e.Status == phase.Note {
			x.Logf("%s", e.Detail)
		}
	})
	return err
}

// TestRecoveredClustersKeepTheirMachines loses a management cluster with everything but a machine
// of its own, recovers its workload cluster on another one from the backup that its manager made,
// and scales it. Machines are simulated, and all else is real. Only the phases that create the new
// management cluster are left out.
func TestRecoveredClustersKeepTheirMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster's life takes a minute")
	}
	m := newRecordedMetal(t)
	t.Setenv(access.TokenKey, m.Token)
	t.Setenv(access.URLKey, m.URL)
	x := &twoSides{T: t, dir: t.TempDir(), version: "1.36"}
	x.files = Files{Dir: x.dir, Cluster: "shepherd"}

	lost := newHerd(t, m)
	own := x.management().Config
	own.Packet.Spec.ProjectID = m.Project
	own.Cluster.Annotations = map[string]string{anywherev1.ManagedByCLIAnnotation: "true", anywherev1.PausedAnnotation: "true"}
	lost.apply(own)
	sheep, err := spec.Read([]byte(sheepSpec))
	lost.must(err)
	lost.apply(sheep)
	lost.ready("1/1")
	from := lost.backUp(m, x.files)
	x.isOn(lost)
	left := m.order("shepherd", "shepherd-1")
	before := m.devices("sheep")
	if len(before) != 2 {
		t.Fatalf("cluster sheep has machines %v", before)
	}
	m.changed()

	r := x.recovery(from)
	gone := func(ctx context.Context, p *phase.Progress) error {
		return preflight(ctx, p, r.checkGone, r.checkClusters)
	}
	if err := x.step(r, gone); err == nil || !strings.Contains(err.Error(), "still answers at") {
		t.Errorf("while the management cluster lives: %v", err)
	}
	lost.manager.Kill()
	lost.server.Stop()
	if err := x.step(r, gone); err == nil || !strings.Contains(err.Error(), "may still act on its clusters: shepherd-1") {
		t.Errorf("while a machine of it exists: %v", err)
	}
	if changes := m.changed(); len(changes) > 0 {
		t.Errorf("a rejected recovery changed %v", changes)
	}

	next := newHerd(t, m)
	r.DeleteOld, r.Target.ControlPlane = true, kubetest.Patience
	arrive := func(context.Context, *phase.Progress) error { x.isOn(next); return nil }
	next.must(x.step(r, gone, r.replace, arrive, r.restore, r.takeOver))
	next.ready("1/1")
	if changes := m.changed(); !slices.Equal(changes, []string{"DELETE /devices/" + left}) {
		t.Errorf("the recovery changed %v, want only that machine %s of the lost management cluster is deleted", changes, left)
	}
	if d := cmp.Diff(before, m.devices("sheep")); d != "" {
		t.Errorf("machines were touched (-before +after):\n%s", d)
	}

	t.Log("the new manager can change it")
	next.until("scaled", func() error {
		c := &anywherev1.Cluster{}
		if err := next.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "sheep"}, c); err != nil {
			return err
		}
		c.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(2)
		return next.Update(t.Context(), c)
	})
	next.ready("2/2")
	after := m.devices("sheep")
	if len(after) != 3 {
		t.Errorf("machines %v, want 3", after)
	}
	for id, was := range before {
		if after[id] != was {
			t.Errorf("machine %s is %q, want %q", id, after[id], was)
		}
	}
	orders := slices.DeleteFunc(m.changed(), func(c string) bool { return !strings.HasSuffix(c, "/devices") && !strings.HasPrefix(c, "DELETE") })
	if want := []string{"POST /projects/" + m.Project + "/devices"}; !slices.Equal(orders, want) {
		t.Errorf("scaling made %v, want %v", orders, want)
	}
}
