package lifecycle

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/test/gittest"
)

// TestManagementClusterWithGitOps creates, upgrades and deletes a management cluster whose spec is
// in Git. Each phase fails once, those that need Git because its server is down, and all commands
// are killed while they wait.
func TestManagementClusterWithGitOps(t *testing.T) {
	x := newGitSides(t)
	x.testProtectedBranch()
	x.testCreate()
	x.testKilledUpgrade()
	x.testUpgrade()
	x.testDelete()
}

// testProtectedBranch checks that nothing is created if the spec can't be committed later.
func (x *gitSides) testProtectedBranch() {
	x.Helper()
	x.bare.Hook("update", "echo main is protected >&2; exit 1")
	err := x.runPlan(x.Context(), x.management().Create, func(phase.Event) {})
	x.bare.Hook("update", "exit 0")
	var failed *phase.FailedError
	if !errors.As(err, &failed) || failed.Phase != SetupAndValidate || !strings.Contains(err.Error(), `branch "main"`) {
		x.Errorf("error %v", err)
	}
	if exists(x.home.Dir) || len(x.has()) > 0 {
		x.Error("something was created")
	}
}

func (x *gitSides) testCreate() {
	x.Helper()
	record, noPlace := blockDirectory(x.files.Record().Dir), blockDirectory(filepath.Dir(x.home.Dir))
	x.runFailing((*Management).Create, map[string]trouble{
		SetupAndValidate: x.gitDown, CreateBootstrapCluster: noPlace, CreateWorkloadCluster: x.at.refusing,
		MoveManagementCluster: x.itself.refusing, InstallEKSAComponents: record, InstallAddOns: x.gitDown, DeleteBootstrap: x.unreadable,
	})
	x.expectInGit(`kubernetesVersion: "1.35"`)
	if n := x.bare.Commits(gittest.Branch); n != 2 {
		x.Errorf("the branch has %d commits, want that of the test and one of the creation", n)
	}
	secret := &corev1.Secret{}
	if err := x.itself.client.Get(x.Context(), client.ObjectKey{Namespace: config.FluxNamespace, Name: anywherev1.GitCredentials}, secret); err != nil {
		x.Fatal(err)
	}
	if secret.Annotations[anywherev1.GitURLAnnotation] != x.repository || secret.Annotations[anywherev1.CredentialsNamespacesAnnotation] != "default" {
		x.Errorf("the credentials are bound to %v", secret.Annotations)
	}
	manager := &appsv1.Deployment{}
	if err := x.itself.client.Get(x.Context(), client.ObjectKey{Namespace: config.Namespace, Name: config.ServiceAccount}, manager); err != nil {
		x.Fatal(err)
	}
	if args := manager.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--gitops") || !slices.Contains(args, "--git-webhook-addr=:9444") {
		x.Errorf("the manager runs with %q", args)
	}
}

// expectInGit checks that the newest commit has a line of the spec.
func (x *gitSides) expectInGit(line string) {
	x.Helper()
	if text := x.bare.File(gittest.Branch, shepherdFile); !strings.Contains(text, line) {
		x.Errorf("Git lacks %q:\n%s", line, text)
	}
}

// testKilledUpgrade kills an upgrade whenever it waits for something, until it succeeds.
func (x *gitSides) testKilledUpgrade() {
	x.Helper()
	x.version = "1.36"
	var waited []string
	for {
		ctx, kill := context.WithCancel(x.Context())
		killedIn := ""
		err := x.runPlan(ctx, x.management().Upgrade, func(e phase.Event) {
			if e.Status == phase.Waiting && killedIn == "" && !slices.Contains(waited, e.Phase+": "+e.Detail) {
				killedIn = e.Phase
				waited = append(waited, e.Phase+": "+e.Detail)
				kill()
			}
		})
		kill()
		if killedIn == "" {
			if err != nil {
				x.Fatalf("the upgrade failed after it was killed in %q: %v", waited, err)
			}
			break
		}
	}
	x.Logf("killed while:\n%s", strings.Join(waited, "\n"))
	x.expectUpgraded("1.36")
	x.expectInGit(`kubernetesVersion: "1.36"`)
}

// expectUpgraded checks that the cluster has a version, manages itself, and that nothing is paused.
func (x *gitSides) expectUpgraded(version string) {
	x.Helper()
	if got := x.has(); !slices.Equal(got, []string{"itself"}) {
		x.Errorf("the cluster is on %v", got)
	}
	live := &anywherev1.Cluster{}
	if err := x.itself.client.Get(x.Context(), client.ObjectKey{Namespace: "default", Name: "shepherd"}, live); err != nil || live.IsPaused() || live.Spec.KubernetesVersion != version {
		x.Errorf("%v: the cluster is %+v", err, live.Spec)
	}
	if x.suspended(x.Context(), fluxSource) || x.suspended(x.Context(), fluxApplication) {
		x.Error("Flux is still suspended")
	}
}

func (x *gitSides) testUpgrade() {
	x.Helper()
	sheep := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sheep"}, Spec: anywherev1.ClusterSpec{Management: ptr.To(false)}}
	if err := x.itself.client.Create(x.Context(), sheep); err != nil {
		x.Fatal(err)
	}
	x.version = "1.37"
	record, noPlace := blockDirectory(x.files.Record().Dir), blockDirectory(filepath.Dir(x.home.Dir))
	x.runFailing((*Management).Upgrade, map[string]trouble{
		SetupAndValidate: x.gitDown, UpdateSecrets: x.itself.refusing, UpgradeNeeded: record,
		PauseEksAAndFluxReconcile: x.itself.refusing, CreateBootstrapCluster: noPlace, InstallCAPI: x.at.refusing,
		MoveManagementToBootstrap: x.itself.refusing, UpgradeWorkloadCluster: x.at.refusing,
		MoveManagementToWorkload: x.itself.refusing, UpdateClusterAndGitResources: x.downWithNothingPaused(sheep),
		ResumeFluxReconcile: x.itself.refusing, DeleteBootstrap: x.unreadable,
	})
	x.expectUpgraded("1.37")
	x.expectInGit(`kubernetesVersion: "1.37"`)
	if err := x.itself.client.Delete(x.Context(), sheep); err != nil {
		x.Fatal(err)
	}
}

// downWithNothingPaused is gitDown, and checks that the failed command has left no cluster paused.
func (x *gitSides) downWithNothingPaused(sheep *anywherev1.Cluster) trouble {
	return func(t *testing.T) func() {
		t.Helper()
		remove := x.gitDown(t)
		return func() {
			remove()
			for _, name := range []string{sheep.Name, "shepherd"} {
				live := &anywherev1.Cluster{}
				if err := x.itself.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, live); err != nil || live.IsPaused() {
					t.Errorf("with the Git server down, cluster %s is paused: %v, %v", name, live.IsPaused(), err)
				}
			}
		}
	}
}

func (x *gitSides) testDelete() {
	x.Helper()
	record, noPlace := blockDirectory(x.files.Record().Dir), blockDirectory(filepath.Dir(x.home.Dir))
	x.runFailing((*Management).Delete, map[string]trouble{
		SetupAndValidate: x.itself.refusing, CreateBootstrapCluster: noPlace, InstallCAPI: x.at.refusing,
		MoveManagementToBootstrap: x.gitDown, DeleteWorkloadCluster: x.at.refusing, CleanupGitRepo: record, DeleteBootstrap: x.unreadable,
	})
	if got := x.has(); len(got) > 0 {
		x.Errorf("after its deletion the cluster is on %v", got)
	}
	if files := x.bare.Files(gittest.Branch); slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, shepherdFile) }) {
		x.Errorf("Git still has the spec: %q", files)
	}
	changes := &droverv1.GitChangeList{}
	if err := x.itself.client.List(x.Context(), changes); err != nil || len(changes.Items) != 4 {
		x.Errorf("%v: %d GitChanges, want one for the creation, two for upgrades, one for the deletion", err, len(changes.Items))
	}
}

func TestGitOpsConfigBecomesAFluxConfig(t *testing.T) {
	x := &twoSides{T: t, dir: t.TempDir(), version: "1.36"}
	m := x.management()
	m.Config.GitOps = &anywherev1.GitOpsConfig{ObjectMeta: m.Config.Cluster.ObjectMeta}
	m.Config.GitOps.Spec.Flux.Github = anywherev1.Github{Owner: "acme", Repository: "fleet"}
	m.Config.Cluster.Spec.GitOpsRef = &anywherev1.Ref{Kind: anywherev1.GitOpsConfigKind, Name: "shepherd"}
	if _, err := m.Create(); err != nil {
		t.Fatal(err)
	}
	flux := m.Config.Flux
	if m.Config.GitOps != nil || flux == nil || flux.Spec.Github.Owner != "acme" || m.Config.Cluster.Spec.GitOpsRef.Kind != anywherev1.FluxConfigKind || len(m.Config.Warnings) != 1 {
		t.Errorf("the spec has %+v and %v", flux, m.Config.Cluster.Spec.GitOpsRef)
	}
}
