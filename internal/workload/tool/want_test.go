package tool

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/model/delegation"
)

func newInput() Input {
	secret := func(name string, kind corev1.SecretType, data map[string]string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Type: kind, Data: map[string][]byte{}}
		for k, v := range data {
			s.Data[k] = []byte(v)
		}
		return s
	}
	c := fake.NewClientBuilder().WithObjects(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "defaults", UID: "defaults"}, Data: map[string]string{
			"values.yaml": "a: 1\nb: {c: 2, d: 3}", "other.yaml": "a: 9", "broken": "canary: [",
		}},
		secret("basic", corev1.SecretTypeBasicAuth, map[string]string{"username": "me", "password": "secret"}),
		secret("docker", corev1.SecretTypeOpaque, map[string]string{"config.json": "{}", "mine": "{1}"}),
		secret("ca", corev1.SecretTypeOpaque, map[string]string{"ca.crt": "pem"}),
		secret("keys", corev1.SecretTypeOpaque, map[string]string{"a.pub": "key"}),
	).Build()
	return Input{Sources: sources.New(c, c)}
}

func newRelease(change func(*addonsv1.HelmReleaseProxySpec)) *addonsv1.HelmReleaseProxy {
	r := &addonsv1.HelmReleaseProxy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-one"},
		Spec:       addonsv1.HelmReleaseProxySpec{ChartName: "web", RepoURL: "https://charts", ReleaseName: "web", Version: "1.0.0"},
	}
	change(&r.Spec)
	return r
}

func TestIDOfHasADefaultNamespace(t *testing.T) {
	for namespace, want := range map[string]ID{"": {"default", "web"}, "apps": {"apps", "web"}} {
		r := newRelease(func(s *addonsv1.HelmReleaseProxySpec) { s.ReleaseNamespace = namespace })
		if got := IDOf(r); got != want {
			t.Errorf("namespace %q: %+v, want %+v", namespace, got, want)
		}
	}
}

func TestWantMergesValues(t *testing.T) {
	config := func(key string) addonsv1.ValuesSource {
		return addonsv1.ValuesSource{Kind: "ConfigMap", Name: "defaults", Key: key}
	}
	missing := addonsv1.ValuesSource{Kind: "Secret", Name: "missing", Optional: true}
	for name, tc := range map[string]struct {
		from   []addonsv1.ValuesSource
		values string
		want   map[string]any
	}{
		"none":                {want: map[string]any{}},
		"own":                 {values: "a: 5", want: map[string]any{"a": float64(5)}},
		"from a ConfigMap":    {from: []addonsv1.ValuesSource{config("")}, want: map[string]any{"a": float64(1), "b": map[string]any{"c": float64(2), "d": float64(3)}}},
		"own over others":     {from: []addonsv1.ValuesSource{config("")}, values: "b: {c: 7}", want: map[string]any{"a": float64(1), "b": map[string]any{"c": float64(7), "d": float64(3)}}},
		"in order":            {from: []addonsv1.ValuesSource{config(""), config("other.yaml")}, values: "b: null", want: map[string]any{"a": float64(9), "b": nil}},
		"optional and absent": {from: []addonsv1.ValuesSource{missing}, values: "a: 5", want: map[string]any{"a": float64(5)}},
	} {
		r := newRelease(func(s *addonsv1.HelmReleaseProxySpec) { s.ValuesFrom, s.Values = tc.from, tc.values })
		want, err := newInput().Want(t.Context(), r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(fmt.Sprint(tc.want), fmt.Sprint(want.Values)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWantReadsAccess(t *testing.T) {
	r := newRelease(func(s *addonsv1.HelmReleaseProxySpec) {
		s.Credentials = &addonsv1.Credentials{Secret: corev1.SecretReference{Name: "basic"}}
		s.TLSConfig = &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Name: "ca"}, InsecureSkipTLSVerify: true}
		s.Verify = &addonsv1.Verification{Provider: "cosign", SecretRef: addonsv1.SecretName{Name: "keys"}}
		s.Drift = &addonsv1.Drift{Ignore: []addonsv1.IgnoreRule{{Kind: "Deployment"}}}
	})
	want, err := newInput().Want(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	access := want.Package.Access
	if access.Username != "me" || access.Password != "secret" || string(access.CA) != "pem" || !access.SkipTLSVerify {
		t.Errorf("access %+v", access)
	}
	if want.Package.Verify == nil || string(want.Package.Verify.Keys["a.pub"]) != "key" || len(want.Ignore) != 1 {
		t.Errorf("want %+v", want)
	}
	for key, content := range map[string]string{"": "{}", "mine": "{1}"} {
		r.Spec.Credentials = &addonsv1.Credentials{Secret: corev1.SecretReference{Name: "docker"}, Key: key}
		if want, err = newInput().Want(t.Context(), r); err != nil || string(want.Package.Access.DockerConfig) != content {
			t.Errorf("key %q: docker config %q, error %v, want %q", key, want.Package.Access.DockerConfig, err, content)
		}
	}
}

func TestWantReportsUnusableInputs(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*addonsv1.HelmReleaseProxySpec)
		reason  string
		missing bool
		message string
	}{
		"values that don't exist": {func(s *addonsv1.HelmReleaseProxySpec) {
			s.ValuesFrom = []addonsv1.ValuesSource{{Kind: "Secret", Name: "nowhere"}}
		}, addonsv1.ValueParsingFailedReason, true, `Secret "ns/nowhere" not found`},
		"values that are no YAML": {func(s *addonsv1.HelmReleaseProxySpec) {
			s.ValuesFrom = []addonsv1.ValuesSource{{Kind: "ConfigMap", Name: "defaults", Key: "broken"}}
		}, addonsv1.ValueParsingFailedReason, false, "parsing document 1 of 2: invalid YAML"},
		"credentials that don't exist": {func(s *addonsv1.HelmReleaseProxySpec) {
			s.Credentials = &addonsv1.Credentials{Secret: corev1.SecretReference{Name: "nowhere"}}
		}, addonsv1.GetCredentialsFailedReason, true, `Secret "ns/nowhere" not found`},
		"credentials without the key": {func(s *addonsv1.HelmReleaseProxySpec) {
			s.Credentials = &addonsv1.Credentials{Secret: corev1.SecretReference{Name: "docker"}, Key: "other"}
		}, addonsv1.GetCredentialsFailedReason, true, `Secret "ns/docker" has no key "other"`},
		"certificates of another namespace": {func(s *addonsv1.HelmReleaseProxySpec) {
			s.TLSConfig = &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Namespace: "other", Name: "ca"}}
		}, addonsv1.GetCACertificateFailedReason, true, `Secret "other/ca" not found`},
		"keys that don't exist": {func(s *addonsv1.HelmReleaseProxySpec) {
			s.Verify = &addonsv1.Verification{SecretRef: addonsv1.SecretName{Name: "nowhere"}}
		}, addonsv1.GetCredentialsFailedReason, true, `reading verification keys: secrets "nowhere" not found`},
	} {
		_, err := newInput().Want(t.Context(), newRelease(tc.change))
		input := new(InputError)
		if !errors.As(err, &input) || input.Reason != tc.reason || input.Missing() != tc.missing || err.Error() != tc.message {
			t.Errorf("%s: error %v, reason %q, want %q, %q", name, err, input.Reason, tc.message, tc.reason)
		}
	}
}

func TestTerminalErrorKeepsItsCause(t *testing.T) {
	cause := errors.New("broken")
	var err error = &TerminalError{cause}
	if err.Error() != "broken" || !errors.Is(err, cause) {
		t.Errorf("error %v hides its cause", err)
	}
}

// onlyMine allows one account to read one Secret.
type onlyMine struct{}

func (onlyMine) MayGet(_ context.Context, account client.ObjectKey, resource schema.GroupResource, object client.ObjectKey) error {
	if account.String() == "ns/deployer" && resource.String() == "secrets" && object.String() == "ns/basic" {
		return nil
	}
	return &delegation.DeniedError{Message: "denied"}
}

func TestReferencesRequirePermission(t *testing.T) {
	login := func(namespace, name string) *addonsv1.Credentials {
		return &addonsv1.Credentials{Secret: corev1.SecretReference{Namespace: namespace, Name: name}}
	}
	ca := func(namespace string) *addonsv1.TLSConfig {
		return &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Namespace: namespace, Name: "ca"}}
	}
	values := []addonsv1.ValuesSource{{Kind: "ConfigMap", Name: "defaults", Optional: true}}
	type spec = addonsv1.HelmReleaseProxySpec
	for name, tc := range map[string]struct {
		change    func(*spec)
		ofPackage bool
		denied    bool
	}{
		"own credentials":                 {change: func(s *spec) { s.Credentials = login("", "basic") }},
		"credentials of others":           {change: func(s *spec) { s.Credentials = login("theirs", "basic") }, denied: true},
		"certificates of others":          {change: func(s *spec) { s.TLSConfig = ca("theirs") }, denied: true},
		"an account that may":             {change: func(s *spec) { s.ServiceAccountName, s.Credentials = "deployer", login("ns", "basic") }},
		"an account that may read others": {change: func(s *spec) { s.ServiceAccountName, s.Credentials = "deployer", login("ns", "docker") }, denied: true},
		"another account":                 {change: func(s *spec) { s.ServiceAccountName, s.Credentials = "nobody", login("", "basic") }, denied: true},
		"an account and certificates":     {change: func(s *spec) { s.ServiceAccountName, s.TLSConfig = "deployer", ca("") }, denied: true},
		"an account and values":           {change: func(s *spec) { s.ServiceAccountName, s.ValuesFrom = "deployer", values }, denied: true},
		"an account and keys": {change: func(s *spec) {
			s.ServiceAccountName, s.Verify = "deployer", &addonsv1.Verification{SecretRef: addonsv1.SecretName{Name: "keys"}}
		}, denied: true},
		"a Package's mirror":               {change: func(s *spec) { s.Credentials = login("eksa-packages", "registry-mirror-cred") }, ofPackage: true},
		"a Package and a Secret of others": {change: func(s *spec) { s.Credentials = login("eksa-packages", "aws-secret") }, ofPackage: true, denied: true},
		"a Package and a mirror of others": {change: func(s *spec) { s.Credentials = login("eksa-packages-b", "registry-mirror-cred") }, ofPackage: true, denied: true},
		"a mirror without a Package":       {change: func(s *spec) { s.Credentials = login("eksa-packages", "registry-mirror-cred") }, denied: true},
	} {
		input := newInput()
		input.Access, input.OfPackage = onlyMine{}, tc.ofPackage
		_, err := input.Want(t.Context(), newRelease(func(s *spec) { s.ClusterRef.Name = "a"; tc.change(s) }))
		if denied := errors.As(err, new(*delegation.DeniedError)); denied != tc.denied || !tc.ofPackage && !denied && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
