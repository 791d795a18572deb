package fleet

import (
	"archive/tar"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/model/scheme"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

const url = "https://git.example.com/fleet.git"

// world is an API server with the API of Flux, a controller that tests call directly, and the
// storage of source-controller.
type world struct {
	*testing.T
	client.Client

	c       *Controller
	support *support
	// ns is the namespace of clusters, system that of Flux.
	ns, system string
	events     *record.FakeRecorder
	storage    *httptest.Server
	artifacts  map[string][]byte
	downloads  int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	if err := install.ApplyFlux(t.Context(), server.Config, install.Options{}); err != nil {
		t.Fatal(err)
	}
	kinds, err := scheme.New(sourcev1.AddToScheme, kustomizev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, Client: c, ns: server.Namespace(t), system: server.Namespace(t), events: record.NewFakeRecorder(100), artifacts: map[string][]byte{}}
	w.storage = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.storage.Close)
	w.support = &support{accepts: true}
	w.c = &Controller{Client: c, Metadata: c, Events: w.events, Reports: NewReports(), HTTP: newClient(), Support: w.support}
	w.connect(w.ns)
	w.must(c.Create(t.Context(), &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: anywherev1.GitCredentials},
		Spec:       sourcev1.GitRepositorySpec{URL: url, Interval: metav1.Duration{Duration: time.Minute}, Reference: &sourcev1.GitRepositoryRef{Branch: "main"}},
	}))
	return w
}

// support is a Flux that does or doesn't accept ExternalArtifacts.
type support struct{ accepts bool }

func (s *support) Served() bool { return true }

func (s *support) Accepts(context.Context, client.ObjectKey) (bool, error) { return s.accepts, nil }

func (s *support) Deny() { s.accepts = false }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) serve(out http.ResponseWriter, r *http.Request) {
	w.downloads++
	data, ok := w.artifacts[strings.TrimPrefix(r.URL.Path, "/")]
	if !ok {
		http.NotFound(out, r)
		return
	}
	_, _ = out.Write(data)
}

// connect opens the repository to namespaces, the first of which gets a FluxConfig.
func (w *world) connect(namespaces ...string) {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: anywherev1.GitCredentials, Annotations: map[string]string{
		anywherev1.GitURLAnnotation: url, anywherev1.GitPathsAnnotation: root, anywherev1.CredentialsNamespacesAnnotation: strings.Join(namespaces, ","),
	}}}
	if err := w.Create(w.Context(), secret); err != nil {
		w.must(client.IgnoreAlreadyExists(err))
		w.must(w.Update(w.Context(), secret))
	}
	if len(namespaces) == 0 {
		return
	}
	w.must(client.IgnoreAlreadyExists(w.Create(w.Context(), &anywherev1.FluxConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaces[0], Name: "fleet"},
		Spec: anywherev1.FluxConfigSpec{
			SystemNamespace: w.system, ClusterConfigPath: root, Branch: "main", Git: &anywherev1.GitProviderConfig{RepositoryURL: url},
		},
	})))
}

// push makes a repository the newest artifact and reconciles. Specs are in the namespace of the
// test.
func (w *world) push(files repository) {
	w.Helper()
	w.publish(w.pack(files), "")
	w.reconcile()
}

// suspend suspends the repository.
func (w *world) suspend() {
	w.Helper()
	repository := w.repository()
	repository.Spec.Suspend = true
	w.must(w.Update(w.Context(), repository))
}

func (w *world) pack(files repository) []byte {
	var entries []tarEntry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, tarEntry{name, strings.ReplaceAll(files[name], "team-a", w.ns), tar.TypeReg})
	}
	return pack(w.T, entries...)
}

// publish stores data as an artifact, with another digest if that isn't empty.
func (w *world) publish(data []byte, pretended digest.Digest) {
	w.Helper()
	sum := digest.FromBytes(data)
	if pretended == "" {
		pretended = sum
	}
	w.artifacts[sum.Encoded()] = data
	repository := w.repository()
	repository.Status.Artifact = &fluxmeta.Artifact{
		URL: w.storage.URL + "/" + sum.Encoded(), Path: sum.Encoded(), Digest: pretended.String(),
		Revision: "main@sha1:" + sum.Encoded()[:40], LastUpdateTime: metav1.Now(),
	}
	w.must(w.Status().Update(w.Context(), repository))
}

func (w *world) repository() *sourcev1.GitRepository {
	w.Helper()
	out := &sourcev1.GitRepository{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: w.system, Name: anywherev1.GitCredentials}, out))
	return out
}

func (w *world) reconcile() {
	w.Helper()
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.system, Name: anywherev1.GitCredentials}}
	_, err := w.c.Reconcile(w.Context(), request)
	w.must(err)
}

// kustomizations describes the Kustomizations of both namespaces by name.
func (w *world) kustomizations() map[string]kustomizev1.Kustomization {
	w.Helper()
	out := map[string]kustomizev1.Kustomization{}
	for _, ns := range []string{w.ns, w.system} {
		list := &kustomizev1.KustomizationList{}
		w.must(w.List(w.Context(), list, client.InNamespace(ns)))
		for _, k := range list.Items {
			out[k.Name] = k
		}
	}
	return out
}

// names returns the names of Kustomizations that are not being deleted, and those that are with the
// policy that they were deleted with.
func (w *world) names() string {
	w.Helper()
	var out []string
	for name, k := range w.kustomizations() {
		if !k.DeletionTimestamp.IsZero() {
			name += " deleted with policy " + k.Spec.DeletionPolicy
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// finalize adds the finalizer of Flux, as kustomize-controller does.
func (w *world) finalize() {
	w.Helper()
	for _, k := range w.kustomizations() {
		k.Finalizers = []string{kustomizev1.KustomizationFinalizer}
		w.must(w.Update(w.Context(), &k))
	}
}

// create creates the Cluster of a spec, as Flux does, with conditions that are true.
func (w *world) create(name string, conditions ...string) *anywherev1.Cluster {
	w.Helper()
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	c.Spec.ManagementCluster.Name = "mgmt"
	c.Spec.KubernetesVersion = "1.36"
	c.Spec.DatacenterRef = anywherev1.Ref{Kind: "DockerDatacenterConfig", Name: name}
	w.must(w.Create(w.Context(), c))
	for _, kind := range conditions {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now(),
		})
	}
	w.must(w.Status().Update(w.Context(), c))
	return c
}

// report returns the report for the FluxConfig.
func (w *world) report() Report {
	w.Helper()
	got := w.c.Reports.Get(client.ObjectKey{Namespace: w.ns, Name: "fleet"})
	if got == nil {
		w.Fatal("there is no report")
	}
	return *got
}

// expectEvents compares the events since the last call.
func (w *world) expectEvents(want ...string) {
	w.Helper()
	for _, one := range want {
		select {
		case got := <-w.events.Events:
			if !strings.Contains(got, one) {
				w.Errorf("event %q, want %q", got, one)
			}
		default:
			w.Errorf("no event %q", one)
		}
	}
	select {
	case more := <-w.events.Events:
		w.Errorf("unexpected event %q", more)
	default:
	}
}

func (w *world) expectNames(when, want string) {
	w.Helper()
	if got := w.names(); got != want {
		w.Errorf("%s: Kustomizations are %q, want %q", when, got, want)
	}
}

// versions returns the versions of all Kustomizations.
func (w *world) versions() string {
	out := map[string]string{}
	for name, k := range w.kustomizations() {
		out[name] = k.ResourceVersion
	}
	return fmt.Sprint(out)
}
