package lifecycle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/plane"
)

// fakeClient has Clusters, and the names of other objects that exist.
type fakeClient struct {
	client.WithWatch

	scheme   *runtime.Scheme
	clusters []anywherev1.Cluster
	exist    map[string]bool
	deleted  []string
}

func (f *fakeClient) Scheme() *runtime.Scheme { return f.scheme }

func (f *fakeClient) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if l, ok := list.(*anywherev1.ClusterList); ok {
		for _, c := range f.clusters {
			if o.Namespace == "" || o.Namespace == c.Namespace {
				l.Items = append(l.Items, c)
			}
		}
	}
	return nil
}

func (f *fakeClient) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if c, ok := o.(*anywherev1.Cluster); ok {
		for i := range f.clusters {
			if client.ObjectKeyFromObject(&f.clusters[i]) == key {
				f.clusters[i].DeepCopyInto(c)
				return nil
			}
		}
	}
	if f.exist[typeName(o)+" "+key.String()] {
		return nil
	}
	return apierrors.NewNotFound(anywherev1.GroupVersion.WithResource("x").GroupResource(), key.Name)
}

func (f *fakeClient) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	f.deleted = append(f.deleted, o.GetObjectKind().GroupVersionKind().Kind+"/"+o.GetName())
	return nil
}

// onFake returns a workload cluster "one" in namespace team-a, with its management plane.
func onFake(t *testing.T, clusters ...anywherev1.Cluster) (*Workload, *fakeClient) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(anywherev1.AddToScheme(scheme), clusterv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	f := &fakeClient{scheme: scheme, clusters: clusters, exist: map[string]bool{}}
	meta := metav1.ObjectMeta{Namespace: "team-a", Name: "one"}
	c := &spec.Config{Cluster: &anywherev1.Cluster{ObjectMeta: meta}, Docker: &anywherev1.DockerDatacenterConfig{ObjectMeta: meta}}
	return &Workload{Options: Options{Dir: t.TempDir()}, Config: c, plane: &inspect.Plane{Client: f}}, f
}

func existing(namespace, name string, edit ...func(*anywherev1.Cluster)) anywherev1.Cluster {
	c := anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: anywherev1.ClusterSpec{Management: ptr.To(false)}}
	for _, e := range edit {
		e(&c)
	}
	return c
}

func paused(c *anywherev1.Cluster) {
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, anywherev1.PausedAnnotation, "true")
}

// check reports problems that don't match: an empty want means none.
func checkProblems(t *testing.T, name string, problems []error, want string) {
	t.Helper()
	err := errors.Join(problems...)
	if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want %q", name, err, want)
	}
}

func TestNameOfANewClusterMustBeFree(t *testing.T) {
	for name, tt := range map[string]struct {
		clusters []anywherev1.Cluster
		exists   string
		want     string
	}{
		"free":                          {[]anywherev1.Cluster{existing("team-a", "two")}, "", ""},
		"taken in the same namespace":   {[]anywherev1.Cluster{existing("team-a", "one")}, "", "drover upgrade cluster"},
		"taken in another namespace":    {[]anywherev1.Cluster{existing("team-b", "one")}, "", `already exists in namespace "team-b"`},
		"taken by a Cluster API object": {nil, "Cluster " + anywherev1.SystemNamespace + "/one", "has a Cluster API cluster of that name"},
	} {
		w, f := onFake(t, tt.clusters...)
		f.exist[tt.exists] = true
		checkProblems(t, name, w.checkName(t.Context(), nil), tt.want)
	}
}

func TestObjectsOfANewClusterMustNotExist(t *testing.T) {
	w, f := onFake(t)
	checkProblems(t, "free", w.checkFree(t.Context(), nil), "")
	f.exist["DockerDatacenterConfig team-a/one"] = true
	checkProblems(t, "taken", w.checkFree(t.Context(), nil), `DockerDatacenterConfig "one" already exists in namespace "team-a"`)
}

func TestDeletionIsRejectedForClustersInUseOrPaused(t *testing.T) {
	manages := func(c *anywherev1.Cluster) { c.Spec.Management = ptr.To(true) }
	byCommand := func(c *anywherev1.Cluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, anywherev1.ManagedByCLIAnnotation, "true")
	}
	allowed := func(c *anywherev1.Cluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, anywherev1.AllowDeleteWhenPausedAnnotation, "true")
	}
	for name, tt := range map[string]struct {
		cluster anywherev1.Cluster
		want    string
	}{
		"a workload cluster":                        {existing("team-a", "one"), ""},
		"a management cluster":                      {existing("team-a", "one", manages), "delete it without --kubeconfig"},
		"a management cluster changed by a command": {existing("team-a", "one", manages, byCommand), ""},
		"a paused cluster":                          {existing("team-a", "one", paused), "is paused"},
		"a paused cluster that may be deleted":      {existing("team-a", "one", paused, allowed), ""},
	} {
		w, _ := onFake(t, tt.cluster)
		checkProblems(t, name, w.checkDeletable(t.Context(), nil), tt.want)
	}
	w, _ := onFake(t)
	checkProblems(t, "one that was never created", w.checkDeletable(t.Context(), nil), "")
	w.Config.Docker = nil
	checkProblems(t, "one of which only the name is known", w.checkDeletable(t.Context(), nil), "one")
}

func TestOnlyUnusedObjectsAreDeleted(t *testing.T) {
	uses := func(c *anywherev1.Cluster) {
		c.Spec.DatacenterRef = anywherev1.Ref{Kind: "DockerDatacenterConfig", Name: "shared"}
	}
	w, f := onFake(t, existing("team-a", "two", uses), existing("team-b", "three"))
	if err := w.deleteUnused(t.Context(), []string{"DockerDatacenterConfig/shared", "DockerDatacenterConfig/one"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"DockerDatacenterConfig/one"}, f.deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

func TestPreflightRunsEveryCheck(t *testing.T) {
	var ran []string
	passes := func(context.Context, *phase.Progress) []error { ran = append(ran, "passes"); return nil }
	fails := func(context.Context, *phase.Progress) []error {
		ran = append(ran, "fails")
		return []error{errors.New("x")}
	}
	failsToo := func(ctx context.Context, p *phase.Progress) []error { return fails(ctx, p) }
	var failed *PreflightError
	if err := preflight(t.Context(), nil, fails, passes, failsToo); !errors.As(err, &failed) || len(failed.Problems) != 2 || len(ran) != 3 {
		t.Errorf("error %v after %v", err, ran)
	}
	if err := preflight(t.Context(), nil, passes); err != nil {
		t.Errorf("no check failed: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := preflight(canceled, nil, fails, failsToo); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestManagementClusterDoesNotOverwriteAnother(t *testing.T) {
	m := &Management{Options: Options{Dir: t.TempDir()}, Config: clusterOf(1, nil), Bootstrap: plane.Home{Dir: filepath.Join(t.TempDir(), "one")}}
	checkProblems(t, "an empty directory", m.checkFiles(t.Context(), nil), "")
	if err := m.files().write(m.files().Kubeconfig(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	checkProblems(t, "the kubeconfig of another", m.checkFiles(t.Context(), nil), "already exists")
	if err := m.files().removeKubeconfig(); err != nil || exists(m.files().Kubeconfig()) {
		t.Errorf("removing the kubeconfig: %v", err)
	}
	if err := os.MkdirAll(m.Bootstrap.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(filepath.Join(m.Bootstrap.Dir, "home.json"), plane.HomeMeta{Format: 1}); err != nil {
		t.Fatal(err)
	}
	checkProblems(t, "a bootstrap plane of another run", m.checkFiles(t.Context(), nil), "drover down --purge")
}

func TestMarkKeepsOtherAnnotations(t *testing.T) {
	m := &Management{Options: Options{Version: "v0.6.0"}, Config: clusterOf(1, nil)}
	m.Config.Cluster.Annotations = map[string]string{"mine": "stays"}
	m.mark()
	want := map[string]string{"mine": "stays", anywherev1.ManagedByCLIAnnotation: "true", anywherev1.ManagementComponentsVersionAnnotation: "v0.6.0"}
	if diff := cmp.Diff(want, m.Config.Cluster.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestManifestHasOnlyWhatTheUserSpecified(t *testing.T) {
	_, f := onFake(t)
	c := existing("team-a", "one", paused)
	c.UID, c.ResourceVersion, c.Finalizers, c.Status.Version = "u", "7", []string{"x"}, "v1.36.3"
	u, err := manifest(f, &c)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"namespace": "team-a", "name": "one", "annotations": map[string]any{anywherev1.PausedAnnotation: "true"}}
	if diff := cmp.Diff(want, u.Object["metadata"]); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if _, has := u.Object["status"]; has || u.GetKind() != "Cluster" {
		t.Errorf("manifest %v", u.Object)
	}
}

func TestPausableClusterIsPausedAndResumed(t *testing.T) {
	c := existing("team-a", "one")
	p := pausableCluster(&c)
	if p.paused || p.name != "Cluster/team-a/one" {
		t.Errorf("pausable %q, paused %v", p.name, p.paused)
	}
	p.pause()
	if !c.IsPaused() || !pausableCluster(&c).paused {
		t.Error("not paused")
	}
	p.resume()
	if c.IsPaused() {
		t.Error("not resumed")
	}
}
