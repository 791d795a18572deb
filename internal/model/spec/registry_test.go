package spec_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

func TestDenyRegistry(t *testing.T) {
	for name, tc := range map[string]struct {
		namespaces, endpoints string
		endpoint, want        string
	}{
		"nothing set":              {"", "", "mirror.example.com", `may not be used by clusters in namespace "team-a"`},
		"another namespace":        {"team-b,team-aa", "mirror.example.com", "mirror.example.com", "ask an administrator to add the namespace"},
		"no endpoint":              {"team-a", "", "mirror.example.com", `may not be sent to "mirror.example.com"`},
		"another endpoint":         {"team-a", "mirror.example.com", "evil.example.com", "ask an administrator to add the endpoint"},
		"another port":             {"team-a", "mirror.example.com", "mirror.example.com:8443", "may not be sent to"},
		"the endpoint as a prefix": {"team-a", "mirror.example.com", "mirror.example.com.evil.net", "may not be sent to"},
		"both":                     {"team-b, team-a", "other:5000, mirror.example.com", "mirror.example.com", ""},
		"the default port":         {"team-a", "https://Mirror.example.com/v2", "mirror.example.com:443", ""},
		"all namespaces":           {"*", "mirror.example.com:5000", "mirror.example.com:5000", ""},
	} {
		secret := &metav1.ObjectMeta{Namespace: "eksa-system", Name: "registry-credentials", Annotations: map[string]string{
			anywherev1.CredentialsNamespacesAnnotation: tc.namespaces, anywherev1.CredentialsEndpointsAnnotation: tc.endpoints,
		}}
		got := spec.DenyRegistry(secret, "team-a", tc.endpoint)
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
