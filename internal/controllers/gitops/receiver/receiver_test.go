package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const (
	token = "0123456789abcdef"
	body  = `{"ref":"refs/heads/main"}`
)

// newClient returns a client for two namespaces: one with a good token, one with a short one.
func newClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, sourcev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	secret := func(namespace, token string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: TokenSecret}, Data: map[string][]byte{TokenKey: []byte(token)}}
	}
	repository := func(namespace string) client.Object {
		return &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "flux-system"}}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		secret("flux-system", token), secret("short", "abc"), secret("empty", ""), repository("flux-system"), repository("short"), repository("empty"), repository("none"),
	).Build()
}

func sign(token, body string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

func TestOnlyAuthenticatedWebhooksMakeFluxFetch(t *testing.T) {
	for name, tt := range map[string]struct {
		namespace, header, value, method string
		want                             int
	}{
		"GitHub":                              {"flux-system", hubSignature, "sha256=" + sign(token, body), "POST", 202},
		"Gitea":                               {"flux-system", giteaSignature, sign(token, body), "POST", 202},
		"GitLab":                              {"flux-system", gitlabToken, token, "POST", 202},
		"no header":                           {"flux-system", "X-None", "", "POST", 404},
		"an empty signature":                  {"flux-system", hubSignature, "sha256=", "POST", 404},
		"a signature without its algorithm":   {"flux-system", hubSignature, sign(token, body), "POST", 404},
		"a signature of another body":         {"flux-system", hubSignature, "sha256=" + sign(token, body+" "), "POST", 404},
		"a signature with another token":      {"flux-system", giteaSignature, sign("fedcba9876543210", body), "POST", 404},
		"another token":                       {"flux-system", gitlabToken, "fedcba9876543210", "POST", 404},
		"part of the token":                   {"flux-system", gitlabToken, token[:15], "POST", 404},
		"a namespace without a token":         {"none", hubSignature, "sha256=" + sign("", body), "POST", 404},
		"a namespace with an empty token":     {"empty", gitlabToken, "", "POST", 404},
		"a namespace with a token to guess":   {"short", gitlabToken, "abc", "POST", 404},
		"a namespace that doesn't exist":      {"other", hubSignature, "sha256=" + sign(token, body), "POST", 404},
		"another method":                      {"flux-system", gitlabToken, token, "GET", 404},
		"a path that is not a namespace":      {"flux-system/x", gitlabToken, token, "POST", 404},
		"a path that leaves the API's prefix": {"..%2Fsecrets", gitlabToken, token, "POST", 404},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t)
			r := httptest.NewRequest(tt.method, "/git/"+tt.namespace, strings.NewReader(body))
			r.Header.Set(tt.header, tt.value)
			w := httptest.NewRecorder()
			newHandler(c, c, logr.Discard()).ServeHTTP(w, r)
			if w.Code != tt.want || w.Body.Len() > 0 {
				t.Errorf("answer %d %q, want %d", w.Code, w.Body, tt.want)
			}
			if got := requested(t, c); (got != "") != (tt.want == http.StatusAccepted) {
				t.Errorf("requested at %q", got)
			}
		})
	}
}

// requested returns when somebody asked Flux to fetch any repository, or "".
func requested(t *testing.T, c client.Client) string {
	t.Helper()
	all := &sourcev1.GitRepositoryList{}
	if err := c.List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Items {
		if at := r.Annotations[fluxmeta.ReconcileRequestAnnotation]; at != "" {
			return at
		}
	}
	return ""
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestBodiesAreBounded(t *testing.T) {
	c := newClient(t)
	r := httptest.NewRequest(http.MethodPost, "/git/flux-system", endless{})
	r.Header.Set(gitlabToken, token)
	w := httptest.NewRecorder()
	newHandler(c, c, logr.Discard()).ServeHTTP(w, r)
	if w.Code != http.StatusNotFound || requested(t, c) != "" {
		t.Errorf("answer %d", w.Code)
	}
}

func TestRequestsAreLimited(t *testing.T) {
	c := newClient(t)
	h := newHandler(c, c, logr.Discard())
	codes := map[int]int{}
	for range 10 * burst {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/git/flux-system", strings.NewReader(body)))
		codes[w.Code]++
	}
	if codes[http.StatusNotFound] < burst || codes[http.StatusTooManyRequests] == 0 {
		t.Errorf("answers by status: %v", codes)
	}
}
