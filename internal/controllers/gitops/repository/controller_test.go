package repository

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/gitops/connection"
	"github.com/drover-dev/drover/internal/controllers/gitops/fleet"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/model/scheme"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

const url = "https://git.example.com/fleet.git"

// world is an API server with the API of Flux, and a controller that tests call directly.
type world struct {
	*testing.T
	client.Client

	c *Controller
	// ns is the namespace of clusters, system that of Flux.
	ns, system string
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
	w := &world{T: t, Client: c, ns: server.Namespace(t), system: server.Namespace(t)}
	w.c = &Controller{Client: c, Metadata: c, Reports: fleet.NewReports(), Plane: connection.Plane{ManagementCluster: "mgmt"}}
	w.bind(url, w.ns)
	w.config("fleet", "main")
	t.Cleanup(func() { // Pruning concerns all namespaces.
		ctx := context.WithoutCancel(t.Context())
		_ = c.DeleteAllOf(ctx, &anywherev1.FluxConfig{}, client.InNamespace(w.ns))
		_ = c.DeleteAllOf(ctx, &sourcev1.GitRepository{}, client.InNamespace(w.system))
	})
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// bind opens a repository to a namespace.
func (w *world) bind(to, namespace string) {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: anywherev1.GitCredentials, Annotations: map[string]string{
		anywherev1.GitURLAnnotation: to, anywherev1.CredentialsNamespacesAnnotation: namespace,
	}}}
	if err := w.Create(w.Context(), secret); err != nil {
		w.must(client.IgnoreAlreadyExists(err))
		w.must(w.Update(w.Context(), secret))
	}
}

func (w *world) config(name, branch string) {
	w.Helper()
	w.must(w.Create(w.Context(), &anywherev1.FluxConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
		Spec:       anywherev1.FluxConfigSpec{SystemNamespace: w.system, Branch: branch, Git: &anywherev1.GitProviderConfig{RepositoryURL: url}},
	}))
}

// reconcile returns the condition RepositoryConnected.
func (w *world) reconcile(name string) metav1.Condition {
	w.Helper()
	key := client.ObjectKey{Namespace: w.ns, Name: name}
	_, err := w.c.Reconcile(w.Context(), ctrl.Request{NamespacedName: key})
	w.must(err)
	config := &anywherev1.FluxConfig{}
	if err := w.Get(w.Context(), key, config); apierrors.IsNotFound(err) {
		return metav1.Condition{}
	}
	found := apimeta.FindStatusCondition(config.Status.Conditions, anywherev1.RepositoryConnected)
	if found == nil {
		w.Fatalf("FluxConfig %q has no conditions", name)
	}
	return *found
}

// repository returns the GitRepository, or nil.
func (w *world) repository() *sourcev1.GitRepository {
	w.Helper()
	out := &sourcev1.GitRepository{}
	err := w.Get(w.Context(), client.ObjectKey{Namespace: w.system, Name: anywherev1.GitCredentials}, out)
	w.must(client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return out
}

func (w *world) expect(got metav1.Condition, status metav1.ConditionStatus, message string) {
	w.Helper()
	if got.Status != status || !strings.Contains(got.Message, message) {
		w.Errorf("condition is %s %q, want %s %q", got.Status, got.Message, status, message)
	}
}

func TestAConnectedFluxConfigGetsAGitRepository(t *testing.T) {
	w := newWorld(t)
	w.expect(w.reconcile("fleet"), metav1.ConditionTrue, "open to the namespace")
	r := w.repository()
	if r == nil || r.Spec.URL != url || r.Spec.Reference.Branch != "main" || r.Spec.Interval.Duration != time.Minute || r.Spec.SecretRef.Name != "flux-system" {
		t.Fatalf("GitRepository is %+v", r)
	}
	w.reconcile("fleet")
	if again := w.repository(); again.ResourceVersion != r.ResourceVersion {
		t.Error("it was written again")
	}
}

func TestAFluxConfigThatIsNotConnectedGetsNothing(t *testing.T) {
	w := newWorld(t)
	w.bind(url, "others")
	w.expect(w.reconcile("fleet"), metav1.ConditionFalse, "ask an administrator to add the namespace")
	if r := w.repository(); r != nil {
		t.Errorf("GitRepository is %+v", r)
	}
}

func TestCredentialsThatAreBoundToAnotherRepositoryAreNoLongerSent(t *testing.T) {
	w := newWorld(t)
	w.reconcile("fleet")
	w.bind("https://git.example.com/other", w.ns)
	w.expect(w.reconcile("fleet"), metav1.ConditionFalse, "may not be sent to")
	if r := w.repository(); r != nil {
		t.Errorf("GitRepository still fetches %s", r.Spec.URL)
	}
}

func TestFluxConfigsOfOneRepositoryHaveOneBranch(t *testing.T) {
	w := newWorld(t)
	w.reconcile("fleet")
	w.config("other", "dev")
	w.expect(w.reconcile("other"), metav1.ConditionFalse, `fetches branch "main" for another FluxConfig`)
	w.expect(w.reconcile("fleet"), metav1.ConditionTrue, "")
	if r := w.repository(); r == nil || r.Spec.Reference.Branch != "main" {
		t.Errorf("GitRepository is %+v", r)
	}
}

func TestTheLastFluxConfigTakesTheGitRepositoryWithIt(t *testing.T) {
	w := newWorld(t)
	w.config("second", "main")
	w.reconcile("fleet")
	w.reconcile("second")
	for _, step := range []struct {
		name string
		left bool
	}{{"fleet", true}, {"second", false}} {
		w.must(w.Delete(t.Context(), &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: step.name}}))
		w.reconcile(step.name)
		if got := w.repository() != nil; got != step.left {
			t.Errorf("without FluxConfig %q, the GitRepository exists: %t", step.name, got)
		}
	}
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: w.system, Name: anywherev1.GitCredentials}, &corev1.Secret{}))
}

func TestASuspendedGitRepositoryWaitsForItsFluxConfig(t *testing.T) {
	w := newWorld(t)
	w.reconcile("fleet")
	r := w.repository()
	r.Spec.Suspend = true
	w.must(w.Update(t.Context(), r))
	w.must(w.Delete(t.Context(), &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "fleet"}}))
	w.reconcile("fleet")
	if r := w.repository(); r == nil || !r.Spec.Suspend {
		t.Errorf("GitRepository is %+v", r)
	}
}

func TestAGitRepositoryOfSomebodyElseIsNeverWritten(t *testing.T) {
	for name, tt := range map[string]struct {
		url, branch string
		want        metav1.ConditionStatus
	}{
		"the same repository and branch": {"https://git.example.com/fleet", "main", metav1.ConditionTrue},
		"another repository":             {"https://git.example.com/other", "main", metav1.ConditionFalse},
		"another branch":                 {url, "dev", metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must(w.Create(t.Context(), &sourcev1.GitRepository{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: anywherev1.GitCredentials},
				Spec:       sourcev1.GitRepositorySpec{URL: tt.url, Interval: metav1.Duration{Duration: time.Hour}, Reference: &sourcev1.GitRepositoryRef{Branch: tt.branch}},
			}))
			version := w.repository().ResourceVersion
			w.expect(w.reconcile("fleet"), tt.want, "")
			w.must(w.Delete(t.Context(), &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "fleet"}}))
			w.reconcile("fleet")
			if r := w.repository(); r == nil || r.ResourceVersion != version {
				t.Errorf("GitRepository is %+v", r)
			}
		})
	}
}
