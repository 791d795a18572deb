package change

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/test/gittest"
)

func TestAChangeIsCommittedFetchedAppliedAndDeleted(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.source()
	w.write("create", "dev")
	change, _ := w.reconcile("create")
	tip := w.repository.Tip(gittest.Branch)
	w.expect(change, droverv1.GitCommitted, droverv1.GitCommittedReason, tip[:12])
	w.expect(change, droverv1.GitApplied, droverv1.GitWaitingReason, "fetch "+tip[:12])
	if change.Status.Commit != tip || w.repository.Commits(gittest.Branch) != 2 {
		t.Errorf("commit %q, the branch has %q after %d", change.Status.Commit, tip, w.repository.Commits(gittest.Branch))
	}
	if file := w.file("dev"); !strings.Contains(file, "kind: Cluster") || !strings.Contains(file, "kind: FluxConfig") {
		t.Errorf("the file is\n%s", file)
	}
	if text := w.repository.Git("log", "-1", "--format=%B", gittest.Branch); !strings.Contains(text, "Drover-On-Behalf-Of: jane") || !strings.HasPrefix(text, "Update cluster dev\n") {
		t.Errorf("the message is\n%s", text)
	}
	requested := w.getSource().Annotations[fluxmeta.ReconcileRequestAnnotation]
	w.reconcile("create")
	if again := w.getSource().Annotations[fluxmeta.ReconcileRequestAnnotation]; requested == "" || again != requested {
		t.Errorf("a fetch was requested at %q and at %q", requested, again)
	}
	w.applied("dev", "main@sha1:"+tip)
	change, result := w.reconcile("create")
	w.expect(change, droverv1.GitChangeReady, droverv1.GitAppliedReason, tip)
	if result.RequeueAfter != lifetime {
		t.Errorf("it is kept for %s", result.RequeueAfter)
	}
	w.clock.Step(lifetime - time.Minute)
	if change, result = w.reconcile("create"); change == nil || result.RequeueAfter <= 0 || result.RequeueAfter > 2*time.Minute {
		t.Errorf("before an hour: %v, %s", change, result.RequeueAfter)
	}
	w.clock.Step(2 * time.Minute)
	if change, _ = w.reconcile("create"); change != nil {
		t.Errorf("after an hour: %+v", change)
	}
}

func TestCommitsAreSignedWithTheKeyOfTheSecret(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.source()
	private, public := gittest.NewKey(t, "ed25519", "open sesame")
	sign := func(passphrase string) {
		secret := &corev1.Secret{}
		w.must(w.Get(w.Context(), client.ObjectKey{Namespace: w.c.FluxNamespace, Name: anywherev1.GitCredentials}, secret))
		secret.Data["signing-key"], secret.Data["signing-passphrase"] = private, []byte(passphrase)
		w.must(w.Update(w.Context(), secret))
	}
	sign("open barley")
	w.write("create", "dev")
	change, _ := w.reconcile("create")
	w.expect(change, droverv1.GitCommitted, droverv1.GitDeniedReason, "reading signing key")
	if n := w.repository.Commits(gittest.Branch); n != 1 {
		t.Fatalf("%d commits with an unusable signing key", n)
	}
	sign("open sesame")
	change, _ = w.reconcile("create")
	w.expect(change, droverv1.GitCommitted, droverv1.GitCommittedReason, "")
	allowed := filepath.Join(t.TempDir(), "allowed")
	w.must(os.WriteFile(allowed, append([]byte("drover@localhost "), public...), 0o600))
	w.repository.Git("-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", gittest.Branch)
}

func TestAReconcileThatChangesNothingWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.source()
	w.write("create", "dev")
	before, _ := w.reconcile("create")
	after, _ := w.reconcile("create")
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("version %s, then %s", before.ResourceVersion, after.ResourceVersion)
	}
}

func TestALaterCommitIsEnough(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.source()
	w.write("create", "dev")
	w.reconcile("create")
	other := "main@sha1:" + w.repository.Commit(gittest.Branch, map[string]string{"README.md": "Another."})
	source := w.getSource()
	source.Status.Artifact = &fluxmeta.Artifact{Revision: other, Path: "x", URL: "http://x", LastUpdateTime: metav1.Now(), Digest: "sha256:" + strings.Repeat("0", 64)}
	source.Status.LastHandledReconcileAt = source.Annotations[fluxmeta.ReconcileRequestAnnotation]
	meta.SetStatusCondition(&source.Status.Conditions, metav1.Condition{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionTrue, Reason: sourcev1.GitOperationSucceedReason})
	w.must(w.Status().Update(t.Context(), source))
	w.applied("dev", other)
	change, _ := w.reconcile("create")
	w.expect(change, droverv1.GitChangeReady, droverv1.GitAppliedReason, other)
}

func TestALostStatusDoesNotCommitTwice(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.write("create", "dev")
	fail := true
	w.c.Client = interceptor.NewClient(w.WithWatch, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if fail {
				return errInjected
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	if _, err := w.c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.ns, Name: "create"}}); err == nil {
		t.Fatal("the status was written")
	}
	fail = false
	change, _ := w.reconcile("create")
	w.expect(change, droverv1.GitCommitted, droverv1.GitUnchangedReason, "")
	if tip := w.repository.Tip(gittest.Branch); change.Status.Commit != tip || w.repository.Commits(gittest.Branch) != 2 {
		t.Errorf("commit %q, the branch has %q after %d", change.Status.Commit, tip, w.repository.Commits(gittest.Branch))
	}
}

func TestALostAnswerDoesNotCommitTwice(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.write("create", "dev")
	var lost atomic.Int32
	w.git.Inject(gittest.LosePush(func() { lost.Add(1) }))
	change, _ := w.reconcile("create")
	w.expect(change, droverv1.GitCommitted, droverv1.GitCommittedReason, "")
	if change.Status.Commit != w.repository.Tip(gittest.Branch) || w.repository.Commits(gittest.Branch) != 2 || lost.Load() != 1 {
		t.Errorf("commit %q, %d commits, %d lost answers", change.Status.Commit, w.repository.Commits(gittest.Branch), lost.Load())
	}
}

func TestAServerThatIsDownIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.git.Stop()
	w.write("create", "dev")
	change, result := w.reconcile("create")
	w.expect(change, droverv1.GitCommitted, droverv1.GitUnavailableReason, "")
	if result.RequeueAfter < retryUnavailable {
		t.Errorf("it is tried again after %s", result.RequeueAfter)
	}
}

func TestAProtectedBranchIsTriedLessOften(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.repository.Hook("pre-receive", "echo the branch is protected >&2; exit 1")
	w.write("create", "dev")
	done := make(chan struct{})
	go w.skipPauses(done) // A rejection is confirmed after a moment of the clock.
	change, result := w.reconcile("create")
	close(done)
	w.expect(change, droverv1.GitChangeReady, droverv1.GitDeniedReason, "rejected by the server")
	if result.RequeueAfter < retryDenied || w.repository.Commits(gittest.Branch) != 1 {
		t.Errorf("it is tried again after %s, with %d commits", result.RequeueAfter, w.repository.Commits(gittest.Branch))
	}
}

// skipPauses moves the clock whenever something waits for it.
func (w *world) skipPauses(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
			if w.clock.HasWaiters() {
				w.clock.Step(10 * time.Second)
			}
		}
	}
}

func TestARepositoryMustBeConnected(t *testing.T) {
	w := newWorld(t)
	w.write("create", "dev")
	change, _ := w.reconcile("create")
	w.expect(change, droverv1.GitCommitted, droverv1.GitDeniedReason, `FluxConfig "fleet" not found`)
	w.fluxConfig(w.git.URL(repositoryName))
	change, _ = w.reconcile("create")
	w.expect(change, droverv1.GitCommitted, droverv1.GitDeniedReason, "not connected")
	w.credentials(w.git.URL(repositoryName), "others")
	change, result := w.reconcile("create")
	w.expect(change, droverv1.GitCommitted, droverv1.GitDeniedReason, "may not be used by clusters in namespace")
	if result.RequeueAfter != 0 || w.repository.Commits(gittest.Branch) != 1 {
		t.Errorf("it is tried again after %s, with %d commits", result.RequeueAfter, w.repository.Commits(gittest.Branch))
	}
}

func TestCredentialsOfAnotherNamespaceAreNotUsed(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.c.FluxNamespace, w.ns = w.ns, w.c.FluxNamespace // Now the FluxConfig names its own namespace.
	w.fluxConfigIn(w.ns)
	w.write("create", "dev")
	change, _ := w.reconcile("create")
	w.expect(change, droverv1.GitCommitted, droverv1.GitDeniedReason, "but Flux is in namespace")
}

// fluxConfigIn creates a FluxConfig that says that Flux is in the namespace of the user.
func (w *world) fluxConfigIn(namespace string) {
	w.Helper()
	config := &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fleet"}}
	config.Spec = anywherev1.FluxConfigSpec{SystemNamespace: namespace, Git: &anywherev1.GitProviderConfig{RepositoryURL: w.git.URL(repositoryName)}}
	w.must(w.Create(w.Context(), config))
}

func TestCredentialsAreSentToNoOtherServer(t *testing.T) {
	w := newWorld(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	t.Cleanup(func() { _ = listener.Close() })
	var connections atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = conn.Close()
		}
	}()
	w.credentials(w.git.URL(repositoryName), "*")
	w.fluxConfig("https://" + listener.Addr().String() + "/" + repositoryName)
	w.write("create", "dev")
	change, _ := w.reconcile("create")
	w.expect(change, droverv1.GitCommitted, droverv1.GitDeniedReason, "may not be sent to")
	if n := connections.Load(); n > 0 {
		t.Errorf("the other server got %d connections", n)
	}
}

func TestChangesOfAClusterAreCommittedInTheOrderOfTheirCreation(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.write("a-first", "dev")
	w.write("b-second", "dev", "count: 1}]", "count: 3}]")
	w.write("other", "prod")
	change, _ := w.reconcile("b-second")
	w.expect(change, droverv1.GitCommitted, droverv1.GitQueuedReason, `GitChange "a-first"`)
	change, _ = w.reconcile("other")
	w.expect(change, droverv1.GitCommitted, droverv1.GitCommittedReason, "")
	w.reconcile("a-first")
	change, _ = w.reconcile("b-second")
	w.expect(change, droverv1.GitCommitted, droverv1.GitCommittedReason, "")
	if file := w.file("dev"); !strings.Contains(file, "count: 3") {
		t.Errorf("the file is\n%s", file)
	}
}

func TestAChangeThatCannotBeMadeLetsOthersPass(t *testing.T) {
	w := newWorld(t)
	w.connect()
	const token = "ghp_0123456789abcdefABCDEF0123456789abcd"
	w.write("a-secret", "dev", "kind: Cluster\nmetadata: {", "kind: Cluster\nmetadata: {annotations: {note: "+token+"}, ")
	w.write("b-good", "dev")
	change, result := w.reconcile("a-secret")
	w.expect(change, droverv1.GitChangeReady, droverv1.GitInvalidReason, "would contain secrets")
	if ready := meta.FindStatusCondition(change.Status.Conditions, droverv1.GitChangeReady); strings.Contains(ready.Message, token) || result.RequeueAfter != lifetime {
		t.Errorf("message %q, next after %s", ready.Message, result.RequeueAfter)
	}
	change, _ = w.reconcile("b-good")
	w.expect(change, droverv1.GitCommitted, droverv1.GitCommittedReason, "")
	if w.repository.Commits(gittest.Branch) != 2 {
		t.Errorf("%d commits", w.repository.Commits(gittest.Branch))
	}
}

func TestARemovalIsAppliedWhenTheClusterIsGone(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.write("create", "dev")
	w.reconcile("create")
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "dev"}}
	c.Spec.KubernetesVersion, c.Spec.DatacenterRef = "1.36", anywherev1.Ref{Kind: "DockerDatacenterConfig", Name: "dev"}
	c.Spec.ManagementCluster.Name = "mgmt"
	w.must(w.Create(t.Context(), c))
	k := w.applied("dev", "main@sha1:"+w.repository.Tip(gittest.Branch))
	w.remove("delete", "dev")
	change, _ := w.reconcile("delete")
	w.expect(change, droverv1.GitCommitted, droverv1.GitCommittedReason, "")
	w.expect(change, droverv1.GitApplied, droverv1.GitWaitingReason, "deletion of cluster")
	if files := w.repository.Files(gittest.Branch); slices.ContainsFunc(files, func(f string) bool { return strings.Contains(f, "/dev/") }) {
		t.Errorf("files %q", files)
	}
	w.must(w.Delete(t.Context(), c))
	change, _ = w.reconcile("delete")
	w.expect(change, droverv1.GitApplied, droverv1.GitWaitingReason, "forget")
	w.must(w.Delete(t.Context(), k))
	change, _ = w.reconcile("delete")
	w.expect(change, droverv1.GitChangeReady, droverv1.GitAppliedReason, "is deleted")
}

func TestARemovalIsSupersededWhenTheClusterIsWrittenAgain(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.write("a-create", "dev")
	w.reconcile("a-create")
	w.applied("dev", "main@sha1:"+w.repository.Tip(gittest.Branch))
	w.remove("b-delete", "dev")
	w.reconcile("b-delete")
	w.write("c-again", "dev")
	w.reconcile("c-again")
	change, _ := w.reconcile("b-delete")
	w.expect(change, droverv1.GitChangeReady, droverv1.GitSupersededReason, "written cluster")
	if !strings.Contains(w.file("dev"), "name: dev") {
		t.Error("the cluster is not in the repository")
	}
}

func TestClustersOfOtherNamespacesAreNotTouched(t *testing.T) {
	w := newWorld(t)
	w.connect()
	const document = "apiVersion: anywhere.eks.amazonaws.com/v1alpha1\nkind: Cluster\nmetadata:\n  name: prod\n  namespace: others\n"
	for name, file := range map[string]string{
		"document": document,
		"list":     "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(document), "\n", "\n  ") + "\n",
		"default":  strings.Replace(document, "  namespace: others\n", "", 1),
	} {
		w.repository.Commit(gittest.Branch, map[string]string{"clusters/mgmt/workload-clusters/prod/eksa-cluster.yaml": file})
		before := w.repository.Tip(gittest.Branch)
		w.write("write-"+name, "prod")
		change, _ := w.reconcile("write-" + name)
		w.expect(change, droverv1.GitChangeReady, droverv1.GitInvalidReason, "of another namespace")
		w.remove("remove-"+name, "prod")
		change, _ = w.reconcile("remove-" + name)
		w.expect(change, droverv1.GitChangeReady, droverv1.GitInvalidReason, "of another namespace")
		if w.repository.Tip(gittest.Branch) != before {
			t.Errorf("%s: the branch changed", name)
		}
	}
}

func TestAtMostTwentyFinishedChangesAreKept(t *testing.T) {
	w := newWorld(t)
	for i := range kept + 2 {
		name := fmt.Sprintf("change-%02d", i)
		w.remove(name, "dev")
		change := w.change(name)
		report(change, facts{committed: true, observed: true, action: droverv1.GitRemove, cluster: "dev"}, w.clock.Now().Add(time.Duration(i)*time.Second))
		w.must(w.Status().Update(t.Context(), change))
	}
	w.remove("elsewhere", "prod")
	for i := range kept + 2 {
		change, _ := w.reconcile(fmt.Sprintf("change-%02d", i))
		if deleted := change == nil; deleted != (i < 2) {
			t.Errorf("change %d: deleted is %t", i, deleted)
		}
	}
	if w.change("elsewhere") == nil {
		t.Error("a change of another cluster is deleted")
	}
}

func TestAnotherChangeUsesTheRepository(t *testing.T) {
	w := newWorld(t)
	w.connect()
	w.write("create", "dev")
	canonical := strings.TrimSuffix(w.git.URL(repositoryName), ".git")
	var woken []ctrl.Request
	w.c.repositories.wake = func(r ctrl.Request) { woken = append(woken, r) }
	if !w.c.repositories.acquire(canonical, ctrl.Request{}) {
		t.Fatal("the repository is in use")
	}
	change, _ := w.reconcile("create")
	w.expect(change, droverv1.GitCommitted, droverv1.GitQueuedReason, "another change of the repository")
	w.c.repositories.release(canonical)
	if len(woken) != 1 || woken[0].Name != "create" {
		t.Errorf("woken: %v", woken)
	}
	change, _ = w.reconcile("create")
	w.expect(change, droverv1.GitCommitted, droverv1.GitCommittedReason, "")
}
