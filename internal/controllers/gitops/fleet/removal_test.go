package fleet

import (
	"strings"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/removal"
)

// confirm confirms that a Cluster is to be deleted.
func (w *world) confirm(c *anywherev1.Cluster) {
	w.Helper()
	was := c.DeepCopy()
	c.Annotations = map[string]string{anywherev1.GitRemovalAnnotation: removal.Confirmed}
	w.must(w.Patch(w.Context(), c, client.MergeFrom(was)))
}

func TestRemovalOfAClusterInUseWaitsForConfirmation(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("dev", "prod"))
	w.finalize()
	prod := w.create("prod", anywherev1.Ready)
	w.push(repository{}.with("dev"))
	w.expectNames("before the confirmation", "dev, prod")
	w.expectEvents("drover gitops confirm prod")
	if diff := cmp.Diff([]string{"prod"}, w.report().Unconfirmed); diff != "" {
		t.Errorf("unconfirmed (-want +got):\n%s", diff)
	}
	w.reconcile()
	w.expectEvents()
	w.confirm(prod)
	w.reconcile()
	w.expectNames("after the confirmation", "dev, prod deleted with policy Delete")
	if got := w.report().Unconfirmed; got != nil {
		t.Errorf("unconfirmed are still %q", got)
	}
}

func TestRemovalOfAClusterThatIsNotReadyNowWaitsToo(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("dev", "prod"))
	w.create("prod", anywherev1.ControlPlaneInitialized)
	w.push(repository{}.with("dev"))
	w.expectNames("before the confirmation", "dev, prod")
}

func TestADirectoryThatComesBackCancelsTheRemoval(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("dev", "prod"))
	prod := w.create("prod", anywherev1.Ready)
	w.push(repository{}.with("dev"))
	w.expectEvents("drover gitops confirm prod")
	w.push(repository{}.with("dev", "prod"))
	w.confirm(prod)
	w.reconcile()
	w.expectNames("after the files came back", "dev, prod")
	w.expectConfirmed(prod, "")
	w.expectEvents("RemovalWithdrawn")
	if got := w.report(); got.Unconfirmed != nil || got.Problems != nil {
		t.Errorf("the report still has %+v", got)
	}
	w.push(repository{}.with("dev"))
	w.expectNames("after they were removed again", "dev, prod")
	w.expectEvents("drover gitops confirm prod")
}

// TestACommandThatDeletesKeepsItsConfirmation follows drover delete cluster, which confirms the
// removal when it is committed, and Flux fetches the commit later.
func TestACommandThatDeletesKeepsItsConfirmation(t *testing.T) {
	for name, tt := range map[string]struct {
		then func(w *world, change *droverv1.GitChange)
		want string
	}{
		"while Flux hasn't fetched the commit": {func(*world, *droverv1.GitChange) {}, removal.Confirmed},
		"while the fetch fails":                {func(w *world, _ *droverv1.GitChange) { w.handle(time.Hour, metav1.ConditionFalse) }, removal.Confirmed},
		"if the last fetch was before it":      {func(w *world, _ *droverv1.GitChange) { w.handle(-time.Hour, metav1.ConditionTrue) }, removal.Confirmed},
		"until a later commit has the files":   {func(w *world, _ *droverv1.GitChange) { w.handle(time.Hour, metav1.ConditionTrue) }, ""},
		"until a later change writes the files": {func(w *world, change *droverv1.GitChange) {
			w.setCondition(change, droverv1.GitChangeReady, metav1.ConditionFalse, droverv1.GitSupersededReason)
		}, ""},
		"until the change is deleted": {func(w *world, change *droverv1.GitChange) { w.must(w.Delete(w.Context(), change)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.push(repository{}.with("dev", "prod"))
			prod := w.create("prod", anywherev1.Ready)
			change := w.removeByCommand("prod")
			w.confirm(prod)
			w.reconcile()
			w.expectConfirmed(prod, removal.Confirmed)
			tt.then(w, change)
			w.reconcile()
			w.expectConfirmed(prod, tt.want)
		})
	}
}

// removeByCommand creates a committed GitChange that removes a cluster.
func (w *world) removeByCommand(cluster string) *droverv1.GitChange {
	w.Helper()
	change := &droverv1.GitChange{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: cluster + "-removal"},
		Spec:       droverv1.GitChangeSpec{Cluster: cluster, Action: droverv1.GitRemove, FluxConfig: "fleet"},
	}
	w.must(w.Create(w.Context(), change))
	change.Status.Commit = strings.Repeat("1", 40)
	w.setCondition(change, droverv1.GitCommitted, metav1.ConditionTrue, droverv1.GitCommittedReason)
	return change
}

func (w *world) setCondition(change *droverv1.GitChange, kind string, status metav1.ConditionStatus, reason string) {
	w.Helper()
	meta.SetStatusCondition(&change.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason})
	w.must(w.Status().Update(w.Context(), change))
}

// handle lets Flux handle a request that was made at a time from now, with or without success.
func (w *world) handle(after time.Duration, ready metav1.ConditionStatus) {
	w.Helper()
	repository := w.repository()
	repository.Status.LastHandledReconcileAt = time.Now().Add(after).Format(time.RFC3339Nano)
	meta.SetStatusCondition(&repository.Status.Conditions, metav1.Condition{Type: fluxmeta.ReadyCondition, Status: ready, Reason: "Test"})
	w.must(w.Status().Update(w.Context(), repository))
}

// expectConfirmed compares the annotation that confirms the removal of a Cluster.
func (w *world) expectConfirmed(c *anywherev1.Cluster, want string) {
	w.Helper()
	w.must(w.Get(w.Context(), client.ObjectKeyFromObject(c), c))
	if got := c.Annotations[anywherev1.GitRemovalAnnotation]; got != want {
		w.Errorf("annotation %s is %q, want %q", anywherev1.GitRemovalAnnotation, got, want)
	}
}

func TestClustersThatNobodyUsesAreRemovedAtOnce(t *testing.T) {
	w := newWorld(t)
	files := repository{}.with("keep", "new", "gone", "deleting")
	files[dirs+"new/addons/a.yaml"] = "a: 1"
	w.push(files)
	w.finalize()
	w.create("new")
	deleting := w.create("deleting", anywherev1.Ready)
	deleting.Finalizers = []string{anywherev1.ClusterFinalizer}
	w.must(w.Update(t.Context(), deleting))
	w.must(w.Delete(t.Context(), deleting))
	w.push(repository{}.with("keep"))
	w.expectNames("after the commit", "deleting deleted with policy Delete, gone deleted with policy Delete, keep, "+
		"new deleted with policy Delete, new.addons deleted with policy Delete")
}

func TestAddOnsAreRemovedWithoutTheirCluster(t *testing.T) {
	w := newWorld(t)
	files := repository{}.with("dev")
	files[dirs+"dev/addons/a.yaml"] = "a: 1"
	w.push(files)
	w.finalize()
	w.push(repository{}.with("dev"))
	w.expectNames("after the commit", "dev, dev.addons deleted with policy Delete")
}

func TestSuspendedKustomizationsAreNotRemoved(t *testing.T) {
	w := newWorld(t)
	w.push(repository{}.with("dev", "prod"))
	k := w.kustomizations()["prod"]
	k.Spec.Suspend = true
	w.must(w.Update(t.Context(), &k))
	w.push(repository{}.with("dev"))
	w.expectNames("after the commit", "dev, prod")
}

// TestWhatCannotBeReadRemovesNothing makes sure of it although nobody uses the cluster, and
// although its removal was confirmed.
func TestWhatCannotBeReadRemovesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		publish func(w *world)
		want    string
	}{
		"an artifact with another digest":   {func(w *world) { w.publish(w.pack(repository{}.with("dev")), digest.FromString("other")) }, "digest"},
		"an artifact that isn't an archive": {func(w *world) { w.publish([]byte("<html>"), "") }, "unpacking"},
		"a storage that has lost the artifact": {func(w *world) {
			w.publish(w.pack(repository{}.with("dev")), "")
			clear(w.artifacts)
		}, "404"},
		"a storage that doesn't answer": {func(w *world) {
			w.publish(w.pack(repository{}.with("dev")), "")
			w.storage.Close()
		}, "connection refused"},
		"an empty repository":           {func(w *world) { w.publish(w.pack(repository{}), "") }, "doesn't have this path"},
		"a repository without the path": {func(w *world) { w.publish(w.pack(repository{"README.md": "moved"}), "") }, "doesn't have this path"},
		"a spec that isn't YAML": {func(w *world) {
			w.publish(w.pack(repository{dirs + "prod/eksa-cluster.yaml": specOf("prod") + "\n---\n["}.with("dev")), "")
		}, dirs + "prod/eksa-cluster.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.push(repository{}.with("dev", "prod"))
			w.confirm(w.create("prod", anywherev1.Ready))
			tt.publish(w)
			w.reconcile()
			w.expectNames("after the failure", "dev, prod")
			if got := strings.Join(w.report().Problems, "\n"); !strings.Contains(got, tt.want) {
				t.Errorf("problems are %q, want %q", got, tt.want)
			}
		})
	}
}
