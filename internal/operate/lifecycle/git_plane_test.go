package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/model/removal"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// gitWorld is a management plane with the kinds of Flux. It simulates the manager, which commits,
// and Flux, which applies.
type gitWorld struct {
	*world

	side *side
	// name is that of the cluster.
	name string
	// unavailable simulates an outage of the Git server, and closed a repository that no
	// administrator has opened.
	unavailable, closed atomic.Bool
	// silent simulates a manager that does not run GitOps.
	silent atomic.Bool
	// commits are the actions that were committed.
	commits atomic.Int32
}

// gitTests share an API server, because starting one takes longer than any of them.
var gitTests = map[string]func(*gitWorld){
	"connected": (*gitWorld).testClusterChangesThroughGit,
	"killed":    (*gitWorld).testKilledCommandFollowsItsGitChange,
	"outage":    (*gitWorld).testGitOutagePausesNothing,
	"cleanup":   (*gitWorld).testUnfinishedCreationIsCleanedUp,
	"closed":    (*gitWorld).testClosedRepositoryIsBypassed,
	"opened":    (*gitWorld).testNewConnectionIsAwaited,
	"silent":    (*gitWorld).testManagerWithoutGitOpsIsBypassed,
}

func TestClusterWithGitOps(t *testing.T) {
	server := kubetest.Start(t)
	if err := errors.Join(
		install.Apply(t.Context(), server.Config, install.Options{}), install.ApplyFlux(t.Context(), server.Config, install.Options{}),
	); err != nil {
		t.Fatal(err)
	}
	for name, test := range gitTests {
		t.Run(name, func(t *testing.T) { test(newGitWorld(t, server, name)) })
	}
}

func newGitWorld(t *testing.T, server *kubetest.Server, name string) *gitWorld {
	t.Helper()
	s := newSide(t, server)
	g := &gitWorld{world: &world{T: t, config: s.config, client: s.client, namespace: server.Namespace(t), dir: t.TempDir()}, side: s, name: name}
	s.simulateControllers([]byte(kubetest.ExampleKubeconfig(name)))
	g.must(client.IgnoreAlreadyExists(g.client.Create(t.Context(), localCredentials())))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			g.playOnce(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return g
}

// playOnce does what the controllers do once. A conflict is resolved the next time.
func (g *gitWorld) playOnce(ctx context.Context) {
	configs, changes := &anywherev1.FluxConfigList{}, &droverv1.GitChangeList{}
	if g.client.List(ctx, configs, client.InNamespace(g.namespace)) != nil || g.client.List(ctx, changes, client.InNamespace(g.namespace)) != nil {
		return
	}
	for i := range configs.Items {
		if g.silent.Load() {
			break
		}
		flux := &configs.Items[i]
		c := metav1.Condition{Type: anywherev1.RepositoryConnected, Status: metav1.ConditionTrue, Reason: anywherev1.RepositoryConnectedReason, ObservedGeneration: flux.Generation}
		if g.closed.Load() {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, anywherev1.RepositoryNotConnectedReason, "no credentials are open to the namespace"
		}
		if apimeta.SetStatusCondition(&flux.Status.Conditions, c) {
			_ = g.client.Status().Update(ctx, flux)
		}
	}
	for i := range changes.Items {
		g.commit(ctx, &changes.Items[i])
	}
}

// commit commits and applies a change, or reports an outage.
func (g *gitWorld) commit(ctx context.Context, change *droverv1.GitChange) {
	if apimeta.IsStatusConditionTrue(change.Status.Conditions, droverv1.GitApplied) {
		return
	}
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		apimeta.SetStatusCondition(&change.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	}
	if g.unavailable.Load() {
		set(droverv1.GitCommitted, metav1.ConditionFalse, droverv1.GitUnavailableReason, "connection refused")
		_ = g.client.Status().Update(ctx, change)
		return
	}
	if !apimeta.IsStatusConditionTrue(change.Status.Conditions, droverv1.GitCommitted) {
		g.commits.Add(1)
		change.Status.Commit = strings.Repeat("c0ffee", 6) + "abcd"
		set(droverv1.GitCommitted, metav1.ConditionTrue, droverv1.GitCommittedReason, "")
		set(droverv1.GitApplied, metav1.ConditionFalse, droverv1.GitWaitingReason, "")
		_ = g.client.Status().Update(ctx, change)
		return
	}
	if g.apply(ctx, change) == nil {
		set(droverv1.GitApplied, metav1.ConditionTrue, droverv1.GitAppliedReason, "")
		_ = g.client.Status().Update(ctx, change)
	}
}

// apply does what Flux does: it applies all objects with its label, or prunes a confirmed cluster.
func (g *gitWorld) apply(ctx context.Context, change *droverv1.GitChange) error {
	if change.Spec.Action == droverv1.GitRemove {
		live := &anywherev1.Cluster{}
		err := g.client.Get(ctx, client.ObjectKey{Namespace: change.Namespace, Name: change.Spec.Cluster}, live)
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		if live.Labels[fluxNameLabel] == "" || live.Annotations[anywherev1.GitRemovalAnnotation] != removal.Confirmed {
			return errors.New("not pruned")
		}
		return g.client.Delete(ctx, live)
	}
	for _, raw := range change.Spec.Objects {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw.Raw, u); err != nil {
			return err
		}
		u.SetLabels(map[string]string{fluxNameLabel: "fleet"})
		if err := g.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kustomize-controller"), client.ForceOwnership); err != nil {
			return err
		}
	}
	return nil
}

// cluster returns a planner of the cluster, as a new process has it.
func (g *gitWorld) cluster(workers int) *Workload {
	w := g.workload(g.name)
	w.REST, w.connectWithin = g.side.config, 2*time.Second
	w.Config.Flux = &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: "fleet"}}
	w.Config.Flux.Spec.Git = &anywherev1.GitProviderConfig{RepositoryURL: "ssh://git@git.example.com/fleet"}
	w.Config.Cluster.Spec.GitOpsRef = &anywherev1.Ref{Kind: anywherev1.FluxConfigKind, Name: "fleet"}
	w.Config.Cluster.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(workers)
	spec.Default(w.Config)
	return w
}

// run runs a plan as a command does, and returns how each phase ended.
func (g *gitWorld) runPlan(ctx context.Context, plan func() (*phase.Plan, error), observe func(phase.Event)) (map[string]phase.Result, error) {
	g.Helper()
	p, err := plan()
	g.must(err)
	results, err := p.Run(ctx, Files{Dir: g.dir, Cluster: g.name}.Record(), observe)
	out := map[string]phase.Result{}
	for _, r := range results {
		out[r.Name] = r
	}
	return out, err
}

// live returns the cluster, or nil.
func (g *gitWorld) live() *anywherev1.Cluster {
	g.Helper()
	live := &anywherev1.Cluster{}
	err := g.client.Get(g.Context(), client.ObjectKey{Namespace: g.namespace, Name: g.name}, live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	g.must(err)
	return live
}

func (g *gitWorld) changes() []droverv1.GitChange {
	g.Helper()
	all := &droverv1.GitChangeList{}
	g.must(g.client.List(g.Context(), all, client.InNamespace(g.namespace)))
	slices.SortFunc(all.Items, func(a, b droverv1.GitChange) int {
		return cmp.Compare(a.CreationTimestamp.Unix(), b.CreationTimestamp.Unix())
	})
	return all.Items
}

func ignoreEvents(phase.Event) {}

func (g *gitWorld) testClusterChangesThroughGit() {
	results, err := g.runPlan(g.Context(), g.cluster(1).Create, ignoreEvents)
	g.must(err)
	if results[InstallAddOns].Skipped != "" {
		g.Errorf("InstallAddOns was skipped: %s", results[InstallAddOns].Skipped)
	}
	live := g.live()
	if live == nil || live.Labels[fluxNameLabel] != "fleet" || live.Annotations[anywherev1.CreationAnnotation] != "" {
		g.Fatalf("the cluster is not applied by Flux alone: %+v", live)
	}
	written := g.changes()[0].Spec
	if written.Action != droverv1.GitWrite || written.FluxConfig != "fleet" || len(written.Objects) != 3 || written.Command != "drover create cluster "+g.name {
		g.Errorf("the GitChange asks for %s with %d objects for %q", written.Action, len(written.Objects), written.Command)
	}

	results, err = g.runPlan(g.Context(), g.cluster(3).Upgrade, ignoreEvents)
	g.must(err)
	if results[PauseEksAAndFluxReconcile].Skipped != "the change goes through Git" {
		g.Errorf("the pause ended with %q", results[PauseEksAAndFluxReconcile].Skipped)
	}
	if live = g.live(); *live.Spec.WorkerNodeGroupConfigurations[0].Count != 3 {
		g.Error("the upgrade is not applied")
	}
	if slices.ContainsFunc(live.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == anywherev1.FieldManagerCLI && f.Operation == metav1.ManagedFieldsOperationApply
	}) {
		g.Error("the command applied the cluster beside Flux")
	}

	_, err = g.runPlan(g.Context(), g.cluster(3).Delete, ignoreEvents)
	g.must(err)
	if g.live() != nil {
		g.Error("the cluster still exists")
	}
	if err := g.client.Get(g.Context(), client.ObjectKey{Namespace: g.namespace, Name: "fleet"}, &anywherev1.FluxConfig{}); err != nil {
		g.Errorf("the FluxConfig, which others may use: %v", err)
	}
	if n := g.commits.Load(); n != 3 {
		g.Errorf("%d commits, want 3", n)
	}
}

func (g *gitWorld) testKilledCommandFollowsItsGitChange() {
	g.unavailable.Store(true)
	ctx, kill := context.WithCancel(g.Context())
	_, err := g.runPlan(ctx, g.cluster(1).Create, func(e phase.Event) {
		if e.Status == phase.Waiting && strings.Contains(e.Detail, "Waiting for the Git server: connection refused") {
			kill()
		}
	})
	var interrupted *phase.InterruptedError
	if !errors.As(err, &interrupted) || interrupted.Phase != CreateWorkloadCluster {
		g.Fatal(err)
	}
	first := g.changes()
	g.unavailable.Store(false)
	_, err = g.runPlan(g.Context(), g.cluster(1).Create, ignoreEvents)
	g.must(err)
	if again := g.changes(); len(first) != 1 || len(again) != 1 || first[0].UID != again[0].UID {
		g.Errorf("%d GitChanges became %d", len(first), len(again))
	}
}

func (g *gitWorld) testGitOutagePausesNothing() {
	_, err := g.runPlan(g.Context(), g.cluster(1).Create, ignoreEvents)
	g.must(err)
	g.unavailable.Store(true)
	upgrade := g.cluster(2)
	upgrade.ControlPlane = time.Second
	_, err = g.runPlan(g.Context(), upgrade.Upgrade, ignoreEvents)
	var timeout *TimeoutError
	if !errors.As(err, &timeout) || !strings.Contains(err.Error(), "Waiting for the Git server") {
		g.Errorf("error = %v", err)
	}
	if live := g.live(); live.IsPaused() || live.Annotations[fluxAnnotation] != "" || *live.Spec.WorkerNodeGroupConfigurations[0].Count != 1 {
		g.Errorf("the cluster was changed: %+v", live)
	}
	// A spec that changes before that replaces the request that was not committed.
	g.unavailable.Store(false)
	_, err = g.runPlan(g.Context(), g.cluster(4).Upgrade, ignoreEvents)
	g.must(err)
	if n := len(g.changes()); n != 2 || *g.live().Spec.WorkerNodeGroupConfigurations[0].Count != 4 {
		g.Errorf("%d GitChanges, want that of the creation and the last one", n)
	}
}

func (g *gitWorld) testUnfinishedCreationIsCleanedUp() {
	ctx, kill := context.WithCancel(g.Context())
	_, err := g.runPlan(ctx, g.cluster(1).Create, func(e phase.Event) {
		if e.Status == phase.Done && e.Phase == CreateWorkloadCluster {
			kill()
		}
	})
	if err == nil {
		g.Fatal("the creation was not interrupted")
	}
	undo := g.cluster(1)
	undo.Undo = true
	_, err = g.runPlan(g.Context(), undo.Delete, ignoreEvents)
	g.must(err)
	all := g.changes()
	if g.live() != nil || !slices.ContainsFunc(all, func(c droverv1.GitChange) bool { return c.Spec.Action == droverv1.GitRemove }) {
		g.Errorf("after the cleanup the cluster is %v, with %d GitChanges", g.live(), len(all))
	}
}

func (g *gitWorld) testClosedRepositoryIsBypassed() {
	g.closed.Store(true)
	results, err := g.runPlan(g.Context(), g.cluster(1).Create, ignoreEvents)
	g.must(err)
	if want := `FluxConfig "fleet" is not connected to its repository: no credentials are open to the namespace`; results[InstallAddOns].Skipped != want {
		g.Errorf("InstallAddOns was skipped because %q", results[InstallAddOns].Skipped)
	}
	if g.live() == nil || len(g.changes()) > 0 {
		g.Error("the cluster is missing, or a commit was requested")
	}
	// Somebody's own Flux would revert an upgrade.
	g.must(g.client.Patch(g.Context(), g.live(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+fluxNameLabel+`":"theirs"}}}`))))
	_, err = g.runPlan(g.Context(), g.cluster(2).Upgrade, ignoreEvents)
	if err == nil || !strings.Contains(err.Error(), `Kustomization "theirs"`) || !strings.Contains(err.Error(), "drover gitops enable") {
		g.Errorf("error = %v", err)
	}
	skip := g.cluster(2)
	skip.SkipFlux = true
	_, err = g.runPlan(g.Context(), skip.Upgrade, ignoreEvents)
	g.must(err)
	if live := g.live(); *live.Spec.WorkerNodeGroupConfigurations[0].Count != 2 || live.Annotations[fluxAnnotation] != "" {
		g.Errorf("the upgrade is not applied, or Flux is still disabled: %+v", live)
	}
}

func (g *gitWorld) testNewConnectionIsAwaited() {
	g.closed.Store(true)
	_, err := g.runPlan(g.Context(), g.cluster(1).Create, ignoreEvents)
	g.must(err)
	w := g.cluster(1)
	g.must(w.connect(g.Context()))
	w.connectWithin, w.justConnected = 100*time.Millisecond, true
	if r, err := w.routeOf(g.Context(), nil, w.Config.Cluster); err != nil || !strings.Contains(r.Reason, "no credentials are open") {
		g.Errorf("a manager that never observes it: route %+v, %v", r, err)
	}
	w.connectWithin = time.Minute
	opening := time.AfterFunc(200*time.Millisecond, func() { g.closed.Store(false) })
	defer opening.Stop()
	if r, err := w.routeOf(g.Context(), nil, w.Config.Cluster); err != nil || !r.isGit() {
		g.Errorf("a manager that observes it late: route %+v, %v", r, err)
	}
	older := w.Config.Cluster.DeepCopy()
	older.Spec.GitOpsRef.Kind = anywherev1.GitOpsConfigKind
	if r, err := w.routeOf(g.Context(), nil, older); err != nil || r.FluxConfig != "fleet" {
		g.Errorf("a GitOpsConfig of that name: route %+v, %v", r, err)
	}
	older.Spec.GitOpsRef.Name = "unknown"
	if r, err := w.routeOf(g.Context(), nil, older); err != nil || !strings.Contains(r.Reason, `no FluxConfig connects GitOpsConfig "unknown"`) {
		g.Errorf("a GitOpsConfig without a FluxConfig: route %+v, %v", r, err)
	}
}

func (g *gitWorld) testManagerWithoutGitOpsIsBypassed() {
	g.silent.Store(true)
	results, err := g.runPlan(g.Context(), g.cluster(1).Create, ignoreEvents)
	g.must(err)
	if want := `the manager does not run GitOps: FluxConfig "fleet" is stored and otherwise ignored`; results[InstallAddOns].Skipped != want {
		g.Errorf("InstallAddOns was skipped because %q", results[InstallAddOns].Skipped)
	}
	// The cluster gets into Git with the first upgrade after that.
	g.silent.Store(false)
	_, err = g.runPlan(g.Context(), g.cluster(1).Upgrade, ignoreEvents)
	g.must(err)
	if live := g.live(); live.Labels[fluxNameLabel] == "" || len(g.changes()) != 1 {
		g.Errorf("after an upgrade without a change, %d GitChanges exist", len(g.changes()))
	}
}

func TestPlaneWithoutGitOpsAppliesDirectly(t *testing.T) {
	w := newWorld(t)
	c := w.workload("nogit")
	c.Config.Cluster.Spec.GitOpsRef = &anywherev1.Ref{Kind: anywherev1.FluxConfigKind, Name: "fleet"}
	w.must(c.connect(t.Context()))
	r, err := c.routeOf(t.Context(), nil, c.Config.Cluster)
	if err != nil || r.isGit() || !strings.Contains(r.Reason, "does not run GitOps") {
		t.Errorf("route %+v, %v", r, err)
	}
	c.Config.Cluster.Spec.GitOpsRef.Kind = anywherev1.GitOpsConfigKind
	if r, err := c.routeOf(t.Context(), nil, c.Config.Cluster); err != nil || !strings.Contains(r.Reason, `does not run GitOps: GitOpsConfig "fleet"`) {
		t.Errorf("route %+v, %v", r, err)
	}
}
