package workload

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/bounded"
)

func TestIdentityFollowsAddressAndCredentials(t *testing.T) {
	base := rest.Config{Host: "https://a", BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{ServerName: "s", CAData: []byte("ca"), CertData: []byte("c"), KeyData: []byte("k")}}
	same := base
	same.QPS, same.UserAgent = 7, "x"
	if identify(&base) != identify(&same) {
		t.Error("settings that do not select a cluster change its identity")
	}
	seen := map[string]string{identify(&base): "no change"}
	for name, change := range map[string]func(*rest.Config){
		"the address":           func(c *rest.Config) { c.Host = "https://b" },
		"the token":             func(c *rest.Config) { c.BearerToken = "u" },
		"the server name":       func(c *rest.Config) { c.ServerName = "r" },
		"the authority":         func(c *rest.Config) { c.CAData = []byte("cb") },
		"the certificate":       func(c *rest.Config) { c.CertData = nil },
		"the proxy":             func(c *rest.Config) { c.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "p"}) },
		"another proxy":         func(c *rest.Config) { c.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "o"}) },
		"the verification":      func(c *rest.Config) { c.Insecure = true },
		"the password":          func(c *rest.Config) { c.Password = "p" },
		"the key":               func(c *rest.Config) { c.KeyData = []byte("l") },
		"a border of two parts": func(c *rest.Config) { c.CertData, c.KeyData = []byte("ck"), nil },
	} {
		other := base
		change(&other)
		if known := seen[identify(&other)]; known != "" {
			t.Errorf("%s and %s have the same identity", name, known)
		}
		seen[identify(&other)] = name
	}
}

func TestTrimKeepsWhatIdentifiesAChange(t *testing.T) {
	long := strings.Repeat("x", maxAnnotation+1)
	in := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: "n", UID: "u", ResourceVersion: "1", Generation: 2, Labels: map[string]string{"l": "v"},
		Annotations: map[string]string{"short": long[1:], "long": long}, Finalizers: []string{"f"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}},
	}}
	out, err := trim(in)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := out.(*metav1.PartialObjectMetadata)
	if !ok || got.Name != "a" || got.Generation != 2 || got.Finalizers != nil || got.ManagedFields != nil || got.OwnerReferences != nil {
		t.Errorf("trimmed to %+v", out)
	}
	if got.Annotations["short"] != long[1:] || len(got.Annotations["long"]) != 64 || strings.Contains(got.Annotations["long"], "x") {
		t.Errorf("annotations %v", got.Annotations)
	}
	if other, err := trim("text"); err != nil || other != "text" {
		t.Errorf("another type becomes %v, error %v", other, err)
	}
}

func TestStatusOnlyChanges(t *testing.T) {
	object := func(generation int64, label, annotation string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Generation: generation, Labels: map[string]string{"l": label}, Annotations: map[string]string{"a": annotation}}}
	}
	before := object(2, "x", "y")
	for name, tt := range map[string]struct {
		after *metav1.PartialObjectMetadata
		want  bool
	}{
		"nothing but the status":    {object(2, "x", "y"), true},
		"the spec":                  {object(3, "x", "y"), false},
		"a label":                   {object(2, "z", "y"), false},
		"an annotation":             {object(2, "x", "z"), false},
		"a kind without generation": {object(0, "x", "y"), false},
	} {
		if got := statusOnly(before, tt.after); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
	}
	if statusOnly(object(0, "x", "y"), object(0, "x", "y")) {
		t.Error("an object of a kind without generation differs in its status only")
	}
}

// roundTrip is a transport made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestFailedRequestsOpenTheBreaker(t *testing.T) {
	refused := errors.New("connection refused")
	for name, tt := range map[string]struct {
		requests int
		cancel   bool
		blocks   bool
		open     bool
	}{
		"a few failures":         {tolerated - 1, false, false, false},
		"too many failures":      {tolerated, false, false, true},
		"one without an answer":  {1, false, true, true},
		"canceled by the caller": {tolerated, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBreaker(client.ObjectKey{Name: "a"}, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
			timeout := time.Hour
			if tt.blocks {
				timeout = time.Millisecond
			}
			tr := &transport{breaker: b, next: Limit(timeout)(roundTrip(func(r *http.Request) (*http.Response, error) {
				if tt.blocks {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return nil, refused
			}))}
			for range tt.requests {
				ctx, cancel := context.WithCancel(t.Context())
				if tt.cancel {
					cancel()
				}
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://a/api", nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := tr.RoundTrip(r)
				if err == nil {
					response.Body.Close()
					t.Error("a failed request has a response")
				}
				if errors.Is(err, bounded.ErrTimeout) != tt.blocks {
					t.Errorf("error %v", err)
				}
				cancel()
			}
			if _, open := b.state(); open != tt.open {
				t.Errorf("the breaker is open: %t", open)
			}
		})
	}
}

func TestResponsesCloseTheBreaker(t *testing.T) {
	b := newBreaker(client.ObjectKey{Name: "a"}, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
	b.failed(bounded.ErrTimeout)
	var requested context.Context
	tr := &transport{breaker: b, next: Limit(time.Hour)(roundTrip(func(r *http.Request) (*http.Response, error) {
		requested = r.Context()
		return &http.Response{StatusCode: http.StatusInternalServerError, Body: io.NopCloser(strings.NewReader("x"))}, nil
	}))}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, open := b.state(); open {
		t.Error("a server that answers with an error is unreachable")
	}
	if requested.Err() != nil {
		t.Error("the request ends before its body is read")
	}
	if err := response.Body.Close(); err != nil || requested.Err() == nil {
		t.Errorf("the request does not end with its body (error %v)", err)
	}
}

func TestUnreachableErrorNamesTheNextAttempt(t *testing.T) {
	cause := errors.New("connection refused")
	err := &UnreachableError{Cluster: client.ObjectKey{Namespace: "n", Name: "a"}, Until: time.Date(2026, 1, 1, 12, 30, 0, 0, time.UTC), Cause: cause}
	if diff := cmp.Diff(`cluster "n/a" is unreachable, next attempt at 12:30:00: connection refused`, err.Error()); diff != "" || !errors.Is(err, cause) {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestEveryRequestImpersonates(t *testing.T) {
	users := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		users <- r.Header.Get("Impersonate-User")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}))
	defer server.Close()
	c, err := connect(client.ObjectKey{Name: "a"}, &rest.Config{Host: server.URL}, Options{RequestTimeout: time.Minute, Clock: clocktesting.NewFakeClock(time.Unix(1e9, 0)), Notify: func(Event) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	as, err := c.As("system:serviceaccount:team-a:deployer")
	if err != nil {
		t.Fatal(err)
	}
	for want, from := range map[string]*Cluster{"": c, "system:serviceaccount:team-a:deployer": as} {
		objects, err := metadata.NewForConfigAndClient(from.Config(), from.HTTP())
		if err != nil {
			t.Fatal(err)
		}
		secrets := corev1.SchemeGroupVersion.WithResource("secrets")
		for name, request := range map[string]func(){
			"Kubernetes": func() { _, _ = from.Kubernetes().CoreV1().Secrets("x").Get(t.Context(), "x", metav1.GetOptions{}) },
			"Dynamic": func() {
				_, _ = from.Dynamic().Resource(secrets).Namespace("x").Get(t.Context(), "x", metav1.GetOptions{})
			},
			"HTTP": func() { _, _ = objects.Resource(secrets).Namespace("x").Get(t.Context(), "x", metav1.GetOptions{}) },
		} {
			request()
			if got := <-users; got != want {
				t.Errorf("%s impersonates %q, want %q", name, got, want)
			}
		}
	}
	for _, from := range []*Cluster{c, as} {
		if again, err := from.As("system:serviceaccount:team-a:deployer"); err != nil || again != as {
			t.Errorf("another connection was opened: %v", err)
		}
	}
	if same, err := c.As(""); err != nil || same != c {
		t.Errorf("without a user: %v", err)
	}
}
