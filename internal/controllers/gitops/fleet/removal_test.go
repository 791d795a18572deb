package fleet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
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
	w.push(repository{}.with("dev", "prod"))
	w.confirm(prod)
	w.reconcile()
	w.expectNames("after the files came back", "dev, prod")
	if got := w.report(); got.Unconfirmed != nil || got.Problems != nil {
		t.Errorf("the report still has %+v", got)
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
