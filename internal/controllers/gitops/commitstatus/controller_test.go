package commitstatus

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/model/scheme"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

const (
	url    = "https://git.example.com/acme/fleet.git"
	first  = "1111111111111111111111111111111111111111"
	second = "2222222222222222222222222222222222222222"
)

// api is the API of a forge for statuses. It accepts one token, and stores every status.
type api struct {
	token    string
	down     bool
	requests int
	statuses []string
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.requests++
	token := strings.TrimPrefix(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "token ") + r.Header.Get("Private-Token")
	switch {
	case a.down:
		http.Error(w, `{}`, http.StatusBadGateway)
	case token != a.token:
		http.Error(w, `{"message": "Bad credentials"}`, http.StatusUnauthorized)
	case r.Method == http.MethodGet:
		_, _ = w.Write([]byte(`[]`))
	default:
		var body map[string]string
		_ = json.NewDecoder(r.Body).Decode(&body)
		commit := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		a.statuses = append(a.statuses, strings.Join([]string{commit[:4], body["context"] + body["name"], body["state"], body["description"]}, " "))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{}`))
	}
}

// world is an API server with a connected repository, the API of its forge, and a controller that
// tests call directly.
type world struct {
	*testing.T
	client.Client

	c          *Controller
	api        *api
	ns, system string
	events     *record.FakeRecorder
}

// live reads Secrets from the API server.
type live struct{ client.Reader }

func (l live) Get(ctx context.Context, _ string, key client.ObjectKey) (sources.Content, error) {
	secret := &corev1.Secret{}
	err := l.Reader.Get(ctx, key, secret)
	return sources.Content{Data: secret.Data, Meta: secret}, err
}

func newWorld(t *testing.T, kind string) *world {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	if err := install.ApplyFlux(t.Context(), server.Config, install.Options{}); err != nil {
		t.Fatal(err)
	}
	kinds, err := scheme.New(sourcev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, Client: c, ns: server.Namespace(t), system: server.Namespace(t), api: &api{token: "good"}, events: record.NewFakeRecorder(10)}
	serving := httptest.NewServer(w.api)
	t.Cleanup(serving.Close)
	w.c = &Controller{Client: c, Secrets: live{c}, Events: w.events, ManagementCluster: "mgmt"}
	w.must(c.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: anywherev1.GitCredentials, Annotations: map[string]string{
			anywherev1.GitURLAnnotation: url, anywherev1.GitForgeAnnotation: kind, anywherev1.GitForgeURLAnnotation: serving.URL,
		}},
		Data: map[string][]byte{"username": []byte("git"), "password": []byte("good")},
	}))
	w.must(c.Create(t.Context(), &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: anywherev1.GitCredentials},
		Spec:       sourcev1.GitRepositorySpec{URL: url, Interval: metav1.Duration{Duration: time.Minute}, Reference: &sourcev1.GitRepositoryRef{Branch: "main"}},
	}))
	w.must(c.Create(t.Context(), &anywherev1.FluxConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "fleet"},
		Spec:       anywherev1.FluxConfigSpec{SystemNamespace: w.system, Branch: "main", Git: &anywherev1.GitProviderConfig{RepositoryURL: url}},
	}))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// fetched makes a commit the newest one.
func (w *world) fetched(commit string) {
	w.Helper()
	r := &sourcev1.GitRepository{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: w.system, Name: anywherev1.GitCredentials}, r))
	r.Status.Artifact = &fluxmeta.Artifact{
		URL: "http://127.0.0.1/a", Path: "a", Digest: "sha256:00", Revision: "main@sha1:" + commit, LastUpdateTime: metav1.Now(),
	}
	w.must(w.Status().Update(w.Context(), r))
	w.reconcile()
}

// applied sets what the FluxConfig says about a commit.
func (w *world) applied(commit string, status metav1.ConditionStatus, message string) {
	w.Helper()
	f := &anywherev1.FluxConfig{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: "fleet"}, f))
	f.Status.Revision = "main@sha1:" + commit
	f.Status.Conditions = []metav1.Condition{
		{Type: anywherev1.RepositoryConnected, Status: metav1.ConditionTrue, Reason: "Connected", LastTransitionTime: metav1.Now()},
		{Type: anywherev1.ClustersApplied, Status: status, Reason: "Test", Message: message, LastTransitionTime: metav1.Now()},
	}
	w.must(w.Status().Update(w.Context(), f))
	w.reconcile()
}

func (w *world) reconcile() ctrl.Result {
	w.Helper()
	result, err := w.c.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.system, Name: anywherev1.GitCredentials}})
	w.must(err)
	return result
}

// expect compares what the forge was told since the last call.
func (w *world) expect(want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.api.statuses); diff != "" {
		w.Errorf("statuses (-want +got):\n%s", diff)
	}
	w.api.statuses = nil
}

func TestACommitIsPendingUntilItIsAppliedOrRejected(t *testing.T) {
	for _, kind := range []string{"github", "gitlab", "gitea"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, kind)
			failure := map[string]string{"gitlab": "failed"}[kind]
			if failure == "" {
				failure = "failure"
			}
			w.fetched(first)
			w.expect()
			w.applied("", metav1.ConditionUnknown, "Waiting")
			w.expect("1111 drover/mgmt pending Drover has seen the commit and applies it")
			w.applied(first, metav1.ConditionUnknown, "Waiting for Flux to apply it to dev")
			w.applied(first, metav1.ConditionUnknown, "Waiting for Flux to apply it to prod")
			w.expect()
			w.applied(first, metav1.ConditionTrue, "Applied")
			w.expect("1111 drover/mgmt success Applied to all clusters")
			requests := w.api.requests
			w.reconcile()
			if w.api.requests != requests {
				t.Errorf("%d requests although nothing changed", w.api.requests-requests)
			}
			w.fetched(second)
			w.applied(second, metav1.ConditionFalse, `Not applied: cluster "bad": version 1.2 is not supported`)
			w.expect("2222 drover/mgmt pending Drover has seen the commit and applies it",
				"2222 drover/mgmt "+failure+" "+w.ns+`: Not applied: cluster "bad": version 1.2 is not supported`)
		})
	}
}

func TestAPendingCommitIsOvertakenByTheNextOne(t *testing.T) {
	w := newWorld(t, "github")
	w.applied(first, metav1.ConditionUnknown, "")
	w.fetched(first)
	w.fetched(second)
	w.expect("1111 drover/mgmt pending Drover has seen the commit and applies it",
		"1111 drover/mgmt success Overtaken by 222222222222, which has the status of all clusters",
		"2222 drover/mgmt pending Drover has seen the commit and applies it")
}

func TestAForgeThatRejectsATokenIsAskedAgainWhenItIsReplaced(t *testing.T) {
	w := newWorld(t, "gitea")
	w.api.token = "better"
	w.applied(first, metav1.ConditionTrue, "")
	w.fetched(first)
	w.reconcile()
	if w.api.requests != 1 || len(w.events.Events) != 1 {
		t.Fatalf("%d requests, %d events", w.api.requests, len(w.events.Events))
	}
	if event := <-w.events.Events; !strings.Contains(event, "check the token") || strings.Contains(event, "good") {
		t.Errorf("event %q", event)
	}
	secret := &corev1.Secret{}
	w.must(w.Get(t.Context(), client.ObjectKey{Namespace: w.system, Name: anywherev1.GitCredentials}, secret))
	secret.Data["password"] = []byte("better")
	w.must(w.Update(t.Context(), secret))
	w.reconcile()
	w.expect("1111 drover/mgmt success Applied to all clusters")
}

func TestAForgeThatIsDownIsAskedAgain(t *testing.T) {
	w := newWorld(t, "gitea")
	w.applied(first, metav1.ConditionTrue, "")
	w.api.down = true
	w.fetched(first)
	if after := w.reconcile().RequeueAfter; after < retrySend {
		t.Errorf("it is asked again after %s", after)
	}
	w.api.down = false
	w.reconcile()
	w.expect("1111 drover/mgmt success Applied to all clusters")
}

func TestCredentialsOfAnotherRepositoryAreNotSent(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.Secret){
		"another repository": func(s *corev1.Secret) { s.Annotations[anywherev1.GitURLAnnotation] = "https://git.example.com/other" },
		"no binding":         func(s *corev1.Secret) { delete(s.Annotations, anywherev1.GitURLAnnotation) },
		"no forge":           func(s *corev1.Secret) { delete(s.Annotations, anywherev1.GitForgeAnnotation) },
		"no token":           func(s *corev1.Secret) { s.Data = nil },
		"an unknown forge":   func(s *corev1.Secret) { s.Annotations[anywherev1.GitForgeAnnotation] = "cvs" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "github")
			secret := &corev1.Secret{}
			w.must(w.Get(t.Context(), client.ObjectKey{Namespace: w.system, Name: anywherev1.GitCredentials}, secret))
			spoil(secret)
			w.must(w.Update(t.Context(), secret))
			w.applied(first, metav1.ConditionTrue, "")
			w.fetched(first)
			if w.api.requests != 0 {
				t.Errorf("%d requests", w.api.requests)
			}
		})
	}
}
