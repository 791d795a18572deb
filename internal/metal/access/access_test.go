package access

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/contents"
)

// newSource returns a source with the manager's credentials and Secrets.
func newSource(manager Credentials, secrets ...client.Object) *Source {
	kube := fake.NewClientBuilder().WithObjects(secrets...).Build()
	return &Source{Secrets: contents.New(kube, kube), Default: manager}
}

// TestManagersCredentialsOpenNoLocalMachines: on an embedded plane, the manager's own credentials
// are those of the machines of this host.
func TestManagersCredentialsOpenNoLocalMachines(t *testing.T) {
	const local = "token of local machines"
	for name, tt := range map[string]struct {
		namespace, token, opened string
		denied                   bool
	}{
		"of a tenant":                     {namespace: "tenant", token: local, denied: true},
		"that an administrator opened":    {namespace: "tenant", token: local, opened: "other,tenant"},
		"if all are open":                 {namespace: "tenant", token: local, opened: "*"},
		"for administrators":              {namespace: "default", token: local},
		"of the system":                   {namespace: "eksa-system", token: local},
		"if another is opened":            {namespace: "tenant", token: local, opened: "other", denied: true},
		"with credentials of another API": {namespace: "tenant", token: "another"},
	} {
		t.Run("a namespace "+name, func(t *testing.T) {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: anywherev1.LocalCredentials}, Data: Credentials{Token: local}.Data(),
			}
			if tt.opened != "" {
				secret.Annotations = map[string]string{anywherev1.CredentialsNamespacesAnnotation: tt.opened}
			}
			s := newSource(Credentials{Token: tt.token, URL: "https://api.example"}, secret)
			_, err := s.For(t.Context(), &infrav1.PacketCluster{ObjectMeta: metav1.ObjectMeta{Namespace: tt.namespace}})
			problem, _ := IsProblem(err)
			if denied := strings.Contains(problem, "may not be used by clusters in namespace"); denied != tt.denied || !denied && err != nil {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestManagerCredentials(t *testing.T) {
	const api = "http://127.0.0.1:8800/metal/v1"
	for name, tt := range map[string]struct {
		manager Credentials
		apiURL  string
		problem string
	}{
		"complete":                    {manager: Credentials{Token: "t", URL: api}},
		"the same URL in the cluster": {manager: Credentials{Token: "t", URL: api}, apiURL: api},
		"another URL in the cluster":  {manager: Credentials{Token: "t", URL: api}, apiURL: "http://elsewhere", problem: "The manager's credentials are not for spec.apiURL"},
		"no token":                    {manager: Credentials{URL: api}, problem: "No credentials: set spec.credentialsRef"},
		"no URL":                      {manager: Credentials{Token: "t"}, problem: "No Packet API: set the key METAL_API_URL"},
		"an invalid URL":              {manager: Credentials{Token: "t", URL: "metal"}, problem: "invalid URL of the Packet API"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(tt.manager)
			c, err := s.For(t.Context(), &infrav1.PacketCluster{Spec: infrav1.PacketClusterSpec{APIURL: tt.apiURL}})
			problem, found := IsProblem(err)
			if found != (tt.problem != "") || !strings.HasPrefix(problem, tt.problem) || (c == nil) != found {
				t.Errorf("client %v, problem %q, want %q", c, problem, tt.problem)
			}
			if strings.Contains(problem, "elsewhere") {
				t.Errorf("problem %q names a URL of the user", problem)
			}
		})
	}
}

func TestClientsAreSharedPerURLAndToken(t *testing.T) {
	s := newSource(Credentials{Token: "t", URL: "https://a"})
	first, err := s.For(t.Context(), &infrav1.PacketCluster{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.For(t.Context(), &infrav1.PacketCluster{}); err != nil || again != first {
		t.Errorf("another client for the same token: %v", err)
	}
	s.Default.Token = "rotated"
	if other, err := s.For(t.Context(), &infrav1.PacketCluster{}); err != nil || other == first || other.Token != "rotated" {
		t.Errorf("the client of the old token is used: %v", err)
	}
}

func TestIsProblem(t *testing.T) {
	if problem, ok := IsProblem(fmt.Errorf("connecting: %w", &Error{Problem: "P"})); !ok || problem != "P" {
		t.Errorf("problem %q, %t", problem, ok)
	}
	if problem, ok := IsProblem(errors.New("timeout")); ok || problem != "" {
		t.Errorf("problem %q, %t", problem, ok)
	}
}

// TestTokenOfASecretIsNotSentToUserURLs: whoever writes a PacketCluster may refer to a Secret that
// they may not read, so the URL that receives its token is not theirs to choose.
func TestTokenOfASecretIsNotSentToUserURLs(t *testing.T) {
	var tokens []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("X-Auth-Token"))
		w.Write([]byte(`{"id":"d"}`))
	}))
	defer thief.Close()
	const api, managers = "https://api.example/metal/v1", "https://manager.example"
	for name, tt := range map[string]struct {
		secretURL, apiURL string
		want              string // the URL that gets the token, or "" for none
	}{
		"no apiURL":                            {secretURL: api, want: api},
		"the same apiURL":                      {secretURL: api, apiURL: api, want: api},
		"the same apiURL with a slash":         {secretURL: api, apiURL: api + "/", want: api},
		"another apiURL":                       {secretURL: api, apiURL: thief.URL},
		"an apiURL that begins the same":       {secretURL: api, apiURL: api + ".evil.example"},
		"no URL in the Secret":                 {want: managers},
		"no URL in the Secret, the manager's":  {apiURL: managers, want: managers},
		"no URL in the Secret, another apiURL": {apiURL: thief.URL},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shared"}, Data: Credentials{Token: "secret", URL: tt.secretURL}.Data()}
			kube := fake.NewClientBuilder().WithObjects(secret).Build()
			s := &Source{Secrets: contents.New(kube, kube), Default: Credentials{Token: "manager", URL: managers}}
			c, err := s.For(t.Context(), &infrav1.PacketCluster{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns"},
				Spec:       infrav1.PacketClusterSpec{APIURL: tt.apiURL, CredentialsRef: &infrav1.CredentialsReference{Name: "shared"}},
			})
			if tt.want != "" {
				if err != nil || c.URL != tt.want || c.Token != "secret" {
					t.Errorf("client %+v, error %v", c, err)
				}
				return
			}
			problem, _ := IsProblem(err)
			if !strings.HasPrefix(problem, `Secret "shared" is not for spec.apiURL: ask an administrator to set its key METAL_API_URL`) {
				t.Errorf("error %v", err)
			}
			if c != nil {
				_, _ = c.Device(t.Context(), "d")
			}
		})
	}
	if len(tokens) > 0 {
		t.Errorf("another server received %q", tokens)
	}
}
