package lifecycle

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// trouble makes a phase fail until it is removed.
type trouble func(t *testing.T) (remove func())

// failureTest runs a command each of whose phases fails once.
type failureTest struct {
	t     *testing.T
	plan  func() (*phase.Plan, error)
	at    phase.Record
	fails map[string]trouble
}

// run makes one phase after the other fail, and runs the command again without the trouble.
func (x failureTest) run() {
	x.t.Helper()
	first, err := x.plan()
	if err != nil {
		x.t.Fatal(err)
	}
	var names []string
	for _, p := range first.Phases {
		names = append(names, p.Name)
	}
	for i, name := range names {
		x.failsIn(names, i)
		x.t.Logf("%s of %s failed as expected", name, first.Command)
	}
	plan, err := x.plan()
	if err != nil {
		x.t.Fatal(err)
	}
	results, err := runFree(x.t.Context(), plan, x.at, func(phase.Event) {})
	if err != nil {
		x.t.Fatalf("the last run: %v", err)
	}
	for i, r := range results {
		if before := i > 0 && i < len(results)-1; r.Before != before {
			x.t.Errorf("phase %s is reported as done before: %v, want %v", r.Name, r.Before, before)
		}
	}
	if _, err := os.Stat(x.at.Path()); err == nil {
		x.t.Error("the checkpoint still exists, want it deleted")
	}
}

// runFree runs a plan once its lock is free: a server that this process forks has a copy of the
// previous one until it executes its program.
func runFree(ctx context.Context, plan *phase.Plan, at phase.Record, observe func(phase.Event)) ([]phase.Result, error) {
	for {
		results, err := plan.Run(ctx, at, observe)
		var busy *phase.BusyError
		if !errors.As(err, &busy) || ctx.Err() != nil {
			return results, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// failsIn runs the command with trouble in one phase, and checks how it ends.
func (x failureTest) failsIn(names []string, i int) {
	x.t.Helper()
	plan, err := x.plan()
	if err != nil {
		x.t.Fatal(err)
	}
	var remove func()
	begin := func() { remove = x.fails[names[i]](x.t) }
	if i == 0 {
		begin()
	}
	results, err := runFree(x.t.Context(), plan, x.at, func(e phase.Event) {
		// The phase before has ended, so that this one is next.
		over := e.Status == phase.Done || e.Status == phase.Skipped || e.Status == phase.Before
		if over && remove == nil && i > 0 && e.Phase == names[i-1] {
			begin()
		}
	})
	if remove == nil {
		x.t.Fatalf("phase %s never came: %v", names[i], err)
	}
	remove()
	var failed *phase.FailedError
	if !errors.As(err, &failed) || failed.Phase != names[i] {
		x.t.Fatalf("with faults in %s: got error %v", names[i], err)
	}
	var done []string
	for _, r := range results {
		done = append(done, r.Name)
	}
	if diff := cmp.Diff(names[:i], done, cmp.Transformer("all", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
		x.t.Errorf("before %s failed it did (-want +got):\n%s", names[i], diff)
	}
}

// refusing makes an API server fail all requests.
func (s *side) refusing(*testing.T) func() {
	s.down.Store(true)
	return func() { s.down.Store(false) }
}

// blockDirectory replaces the directory that a phase writes to with a file.
func blockDirectory(path string) trouble {
	return func(t *testing.T) func() {
		t.Helper()
		aside := path + ".aside"
		_ = os.Rename(path, aside)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return func() {
			_ = os.Remove(path)
			_ = os.Rename(aside, path)
		}
	}
}

func TestWorkloadClusterResumesAfterAFailureInEachPhase(t *testing.T) {
	w := newWorld(t)
	s := newSide(t, kubetest.SharedWithoutWebhooks(t))
	s.simulateControllers([]byte(kubetest.ExampleKubeconfig("shaky")))
	c := w.workload("shaky")
	files := Files{Dir: w.dir, Cluster: "shaky"}
	record := blockDirectory(files.Record().Dir)
	fresh := func() *Workload {
		return &Workload{Options: Options{Dir: w.dir}, Config: &spec.Config{Cluster: c.Config.Cluster.DeepCopy(), Docker: c.Config.Docker.DeepCopy()}, REST: s.config}
	}
	w.must(client.IgnoreAlreadyExists(w.client.Create(t.Context(), localCredentials())))

	failureTest{t, func() (*phase.Plan, error) { return fresh().Create() }, files.Record(), map[string]trouble{
		SetupAndValidate: s.refusing, CreateWorkloadCluster: s.refusing, InstallAddOns: record,
	}}.run()
	if _, err := os.Stat(files.Kubeconfig()); err != nil {
		t.Error(err)
	}

	c.Config.Cluster.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(3)
	failureTest{t, func() (*phase.Plan, error) { return fresh().Upgrade() }, files.Record(), map[string]trouble{
		SetupAndValidate: s.refusing, PauseEksAAndFluxReconcile: record, UpgradeWorkloadCluster: s.refusing,
		UpdateClusterAndGitResources: blockFile(files.Spec()), ResumeFluxReconcile: record,
	}}.run()
	live := &anywherev1.Cluster{}
	w.must(w.client.Get(t.Context(), c.key(), live))
	if live.IsPaused() || *live.Spec.WorkerNodeGroupConfigurations[0].Count != 3 {
		t.Errorf("the cluster is %+v", live.Spec)
	}

	failureTest{t, func() (*phase.Plan, error) { return fresh().Delete() }, files.Record(), map[string]trouble{
		SetupAndValidate: s.refusing, DeleteWorkloadCluster: s.refusing, CleanupGitRepo: record,
	}}.run()
	if err := w.client.Get(t.Context(), c.key(), live); err == nil {
		t.Error("the cluster is still there")
	}
}

func localCredentials() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: anywherev1.LocalCredentials}}
}

// blockFile replaces the file that a phase writes with a directory.
func blockFile(file string) trouble {
	return func(t *testing.T) func() {
		t.Helper()
		_ = os.Remove(file)
		if err := os.Mkdir(file, 0o700); err != nil {
			t.Fatal(err)
		}
		return func() { _ = os.Remove(file) }
	}
}

// metalAPI starts a metal API that has enough machines, or rejects the credentials.
func metalAPI(t *testing.T) (url string, refusing trouble) {
	t.Helper()
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"servers":[{"quantity":1,"available":true}]}`))
	}))
	t.Cleanup(server.Close)
	return server.URL, func(*testing.T) func() {
		down.Store(true)
		return func() { down.Store(false) }
	}
}

// twoSides are a future management cluster and a bootstrap plane.
type twoSides struct {
	*testing.T

	dir        string
	itself, at *side
	metal      trouble
	version    string
	home       plane.Home
	files      Files
	unreadable trouble
	// repository is the URL of the cluster's repository, or "".
	repository string
	// last is the planner of the newest process.
	last *Management
}

func newTwoSides(t *testing.T) *twoSides {
	t.Helper()
	own := kubetest.Start(t)
	if err := install.Apply(t.Context(), own.Config, install.Options{}); err != nil {
		t.Fatal(err)
	}
	x := &twoSides{T: t, dir: t.TempDir(), itself: newSide(t, own), at: newSide(t, kubetest.SharedWithoutWebhooks(t)), version: "1.35"}
	way, err := os.ReadFile(x.itself.kubeconfig(filepath.Join(x.dir, "own.kubeconfig")))
	if err != nil {
		t.Fatal(err)
	}
	x.itself.simulateControllers(way)
	x.at.simulateControllers(way)
	t.Setenv(planeVariable, x.at.kubeconfig(filepath.Join(x.dir, "at.kubeconfig")))
	var api string
	api, x.metal = metalAPI(t)
	t.Setenv(access.TokenKey, "token")
	t.Setenv(access.URLKey, api)
	x.home = plane.Home{Dir: filepath.Join(x.dir, "bootstrap", "shepherd")}
	x.files = Files{Dir: x.dir, Cluster: "shepherd"}
	x.unreadable = damageFile(filepath.Join(x.home.Dir, "run", "state.json"))
	t.Cleanup(func() { _ = (&Management{Bootstrap: x.home}).deleteBootstrap(t.Context(), nil) })
	return x
}

// damageFile damages a file.
func damageFile(file string) trouble {
	return func(t *testing.T) func() {
		t.Helper()
		content, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte("{"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() { _ = os.WriteFile(file, content, 0o600) }
	}
}

// management returns the planner of a new process.
func (x *twoSides) management() *Management {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "shepherd"}
	ref := &anywherev1.Ref{Kind: anywherev1.PacketMachineConfigKind, Name: "shepherd"}
	c := &spec.Config{
		Cluster:  &anywherev1.Cluster{ObjectMeta: meta},
		Packet:   &anywherev1.PacketDatacenterConfig{ObjectMeta: meta, Spec: anywherev1.PacketDatacenterConfigSpec{ProjectID: "p", Metro: "da"}},
		Machines: map[string]*anywherev1.PacketMachineConfig{"shepherd": {ObjectMeta: meta, Spec: anywherev1.PacketMachineConfigSpec{MachineType: "small", OS: "ubuntu_24_04"}}},
	}
	s := &c.Cluster.Spec
	s.KubernetesVersion = x.version
	s.ManagementCluster.Name = "shepherd"
	s.ControlPlaneConfiguration = anywherev1.ControlPlaneConfiguration{Count: 1, MachineGroupRef: ref}
	s.DatacenterRef = anywherev1.Ref{Kind: anywherev1.PacketDatacenterConfigKind, Name: "shepherd"}
	if x.repository != "" {
		c.Flux = &anywherev1.FluxConfig{ObjectMeta: meta, Spec: anywherev1.FluxConfigSpec{Git: &anywherev1.GitProviderConfig{RepositoryURL: x.repository}}}
		s.GitOpsRef = &anywherev1.Ref{Kind: anywherev1.FluxConfigKind, Name: "shepherd"}
	}
	spec.Default(c)
	x.last = &Management{Options: Options{Dir: x.dir}, Config: c, Bootstrap: x.home, Image: "drover.example/manager:1"}
	return x.last
}

func (x *twoSides) runFailing(plan func(*Management) (*phase.Plan, error), fails map[string]trouble) {
	x.Helper()
	failureTest{x.T, func() (*phase.Plan, error) { return plan(x.management()) }, x.files.Record(), fails}.run()
	if _, err := os.Stat(x.home.Dir); err == nil {
		x.Error("the bootstrap plane still exists, want it deleted")
	}
}

// has returns the sides that have the cluster.
func (x *twoSides) has() []string {
	x.Helper()
	var out []string
	for name, s := range map[string]*side{"itself": x.itself, "bootstrap": x.at} {
		if err := s.client.Get(x.Context(), client.ObjectKey{Namespace: "default", Name: "shepherd"}, &anywherev1.Cluster{}); err == nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func TestManagementClusterResumesAfterAFailureInEachPhase(t *testing.T) {
	x := newTwoSides(t)
	record, noPlace := blockDirectory(x.files.Record().Dir), blockDirectory(filepath.Dir(x.home.Dir))
	x.runFailing((*Management).Create, map[string]trouble{
		SetupAndValidate: x.metal, CreateBootstrapCluster: noPlace, CreateWorkloadCluster: x.at.refusing,
		MoveManagementCluster: x.itself.refusing, InstallEKSAComponents: x.itself.refusing, InstallAddOns: record,
		DeleteBootstrap: x.unreadable,
	})
	if got := x.has(); !slices.Equal(got, []string{"itself"}) {
		t.Fatalf("after its creation the cluster is on %v", got)
	}

	sheep := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sheep"}, Spec: anywherev1.ClusterSpec{Management: ptr.To(false)}}
	if err := x.itself.client.Create(t.Context(), sheep); err != nil {
		t.Fatal(err)
	}
	x.version = "1.36"
	x.runFailing((*Management).Upgrade, map[string]trouble{
		SetupAndValidate: x.itself.refusing, UpdateSecrets: x.itself.refusing, UpgradeNeeded: record,
		PauseEksAAndFluxReconcile: x.itself.refusing, CreateBootstrapCluster: noPlace, InstallCAPI: x.at.refusing,
		MoveManagementToBootstrap: x.itself.refusing, UpgradeWorkloadCluster: x.at.refusing,
		MoveManagementToWorkload: x.itself.refusing, UpdateClusterAndGitResources: x.itself.refusing,
		ResumeFluxReconcile: x.itself.refusing, DeleteBootstrap: x.unreadable,
	})
	live := &anywherev1.Cluster{}
	if err := x.itself.client.Get(t.Context(), client.ObjectKeyFromObject(sheep), live); err != nil || live.IsPaused() {
		t.Errorf("%v: the workload cluster is paused: %v", err, live.IsPaused())
	}
	if err := x.itself.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "shepherd"}, live); err != nil || live.IsPaused() || live.Spec.KubernetesVersion != "1.36" {
		t.Errorf("%v: after the upgrade the cluster is %+v", err, live)
	}
	if err := x.itself.client.Delete(t.Context(), sheep); err != nil {
		t.Fatal(err)
	}

	x.runFailing((*Management).Delete, map[string]trouble{
		SetupAndValidate: x.itself.refusing, CreateBootstrapCluster: noPlace, InstallCAPI: x.at.refusing,
		MoveManagementToBootstrap: x.itself.refusing, DeleteWorkloadCluster: x.at.refusing, CleanupGitRepo: record,
		DeleteBootstrap: x.unreadable,
	})
	if got := x.has(); len(got) > 0 {
		t.Errorf("after its deletion the cluster is on %v", got)
	}
	if left, _ := filepath.Glob(filepath.Join(x.dir, "shepherd", "*.kubeconfig")); len(left) > 0 {
		t.Errorf("%s still exists, want it deleted", strings.Join(left, ", "))
	}
}

// TestCleanupAfterAnInterruptedMove interrupts the creation of a management cluster while its
// objects move there, after ever more writes on either side, and cleans it up.
func TestCleanupAfterAnInterruptedMove(t *testing.T) {
	x := newTwoSides(t)
	for name, dying := range map[string]*side{"the new cluster": x.itself, "the bootstrap plane": x.at} {
		writes := int64(1)
		for ; x.interruptMove(dying, writes); writes += 6 {
			undo := x.management()
			undo.Undo = true
			if err := x.runPlan(t.Context(), undo.Delete, func(phase.Event) {}); err != nil {
				t.Fatalf("%s was left after %d writes, and the cleanup failed: %v", name, writes, err)
			}
			if got := x.has(); len(got) > 0 {
				t.Errorf("%s was left after %d writes, and after the cleanup the cluster is on %v", name, writes, got)
			}
			// The spec stays, as after every deletion.
			for _, left := range []string{x.home.Dir, x.files.Record().Dir, x.files.Kubeconfig()} {
				if _, err := os.Stat(left); err == nil {
					t.Errorf("%s was left after %d writes, and after the cleanup there is %s", name, writes, left)
				}
			}
		}
		t.Logf("a move makes about %d writes on %s", writes, name)
		if writes < 7 {
			t.Errorf("a move makes less than %d writes on %s: this proves nothing", writes, name)
		}
	}
}

// interruptMove creates a cluster, with a command that ends after some writes of the move on one
// side. It reports whether that happened; if the move was over before, it deletes the cluster.
func (x *twoSides) interruptMove(dying *side, writes int64) bool {
	x.Helper()
	ctx, kill := context.WithCancel(x.Context())
	defer kill()
	dying.died = kill
	err := x.runPlan(ctx, x.management().Create, func(e phase.Event) {
		if e.Phase == CreateWorkloadCluster && e.Status == phase.Done {
			dying.left.Store(writes)
		}
		if e.Phase == MoveManagementCluster && e.Status == phase.Done {
			dying.left.Store(0)
		}
	})
	dying.left.Store(0)
	dying.down.Store(false)
	if ctx.Err() != nil && err != nil {
		return true
	}
	if err != nil {
		x.Fatalf("creating the cluster: %v", err)
	}
	if err := x.runPlan(x.Context(), x.management().Delete, func(phase.Event) {}); err != nil {
		x.Fatal(err)
	}
	return false
}

func (x *twoSides) runPlan(ctx context.Context, plan func() (*phase.Plan, error), observe func(phase.Event)) error {
	x.Helper()
	p, err := plan()
	if err != nil {
		x.Fatal(err)
	}
	_, err = runFree(ctx, p, x.files.Record(), observe)
	return err
}
