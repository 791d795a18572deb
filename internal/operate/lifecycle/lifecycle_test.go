package lifecycle

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/model/demand"
	"github.com/drover-dev/drover/internal/model/spec"
)

func TestVersionSkew(t *testing.T) {
	for _, tt := range []struct {
		own, plane string
		problem    string
	}{
		{"v0.6.0", "v0.6.3", ""},
		{"v0.6.3", "v0.6.0", ""},
		{"v0.6.0", "v0.5.9", ""},
		{"v0.6.0", "v0.4.0", "only the previous minor version"},
		{"v0.5.0", "v0.6.0", "an older drover"},
		{"v0.9.0", "v1.0.0", "an older drover"},
		{"v1.0.0", "v0.9.0", "only the previous minor version"},
		{"v0.6.0-dev.7+g1a2b3c4", "v0.6.0-dev.7+g1a2b3c4", ""},
		{"v0.6.0-dev.10+g1a2b3c4", "v0.6.0-dev.9+g5d6e7f8", ""},
		{"v0.6.0-dev.9+g5d6e7f8", "v0.6.0-dev.10+g1a2b3c4", "an older drover"},
		{"v0.6.0-dev", "v0.6.0-dev.10+g1a2b3c4", ""},
		{"v0.6.0-dev.10+g1a2b3c4", "v0.6.0", "an older drover"},
		{"v0.6.0", "v0.6.0-dev.10+g1a2b3c4", ""},
		{"v0.6.0-dev.0+g1a2b3c4", "v0.5.0", ""},
		{"v0.6.0-dev.0+g1a2b3c4", "v0.4.0", "only the previous minor version"},
		{"v0.6.0-dev", "v0.7.0", "an older drover"},
		{"v0.6.0", "latest", ""},
		{"v0.6.0", "", ""},
	} {
		err := checkSkew(tt.own, tt.plane)
		if (tt.problem == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s on %s: %v, want %q", tt.own, tt.plane, err, tt.problem)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.own) || !strings.Contains(err.Error(), tt.plane) || !strings.Contains(err.Error(), "nothing was changed")) {
			t.Errorf("%v does not name both versions", err)
		}
	}
}

func TestDifferencesNameChangedFields(t *testing.T) {
	from := map[string]any{
		"version": "1.35", "same": true, "gone": int64(1),
		"groups": []any{map[string]any{"name": "a", "count": int64(1)}, map[string]any{"name": "b", "count": int64(1)}},
	}
	to := map[string]any{
		"version": "1.36", "same": true,
		"groups": []any{map[string]any{"name": "b", "count": int64(3)}, map[string]any{"name": "a", "count": int64(1)}},
	}
	var got []string
	for _, d := range differences("Cluster/one", from, to) {
		got = append(got, d.String())
	}
	want := []string{"Cluster/one spec.gone: 1 → none", "Cluster/one spec.groups[b].count: 1 → 3", "Cluster/one spec.version: 1.35 → 1.36"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if more := differences("Cluster/one", from, from); len(more) > 0 {
		t.Errorf("a spec differs from itself: %v", more)
	}
}

// certificate returns a client certificate that expired some time ago.
func certificate(t *testing.T, ended time.Duration) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "dev"}, NotAfter: time.Now().Add(-ended)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestExpiredClientCertificateIsNamed(t *testing.T) {
	config := &rest.Config{Host: "https://mgmt", TLSClientConfig: rest.TLSClientConfig{CertData: certificate(t, time.Hour)}}
	var unreachable *UnreachableError
	if err := checkClientCertificate(config, "mgmt.kubeconfig", time.Now()); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), `"dev" in mgmt.kubeconfig expired at`) {
		t.Errorf("got error %v, want one that contains %q", err, `"dev" in mgmt.kubeconfig expired at`)
	}
	config.CertData = certificate(t, -time.Hour)
	if err := checkClientCertificate(config, "mgmt.kubeconfig", time.Now()); err != nil {
		t.Errorf("a certificate that is good: %v", err)
	}
	if err := checkClientCertificate(&rest.Config{BearerToken: "x"}, "", time.Now()); err != nil {
		t.Errorf("no certificate: %v", err)
	}
}

func TestUnreachableManagementPlaneIsExplained(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"no kinds":        {apierrors.NewNotFound(anywherev1.GroupVersion.WithResource("clusters").GroupResource(), ""), "Drover is not installed there"},
		"not known":       {apierrors.NewUnauthorized("x"), "rejected your credentials"},
		"not let in":      {apierrors.NewForbidden(anywherev1.GroupVersion.WithResource("clusters").GroupResource(), "", errors.New("no")), "drover-cluster-creator"},
		"other authority": {x509.UnknownAuthorityError{}, "is not the one in the kubeconfig"},
		"old certificate": {x509.CertificateInvalidError{Reason: x509.Expired}, "compare the clocks"},
		"something else":  {errors.New("odd"), "odd"},
	} {
		if err := explainUnreachable(tt.err, "https://mgmt", "mgmt.kubeconfig"); !strings.Contains(err.Error(), tt.want) || !errors.Is(err, tt.err) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	if err := explainUnreachable(nil, "", ""); err != nil {
		t.Error(err)
	}
}

// clusterOf returns a cluster with groups of workers, by machine config.
func clusterOf(controlPlanes int, workers map[string]int) *spec.Config {
	c := &spec.Config{Cluster: &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, Machines: map[string]*anywherev1.PacketMachineConfig{}}
	c.Cluster.Spec.ControlPlaneConfiguration.Count = controlPlanes
	for name, n := range workers {
		c.Cluster.Spec.WorkerNodeGroupConfigurations = append(c.Cluster.Spec.WorkerNodeGroupConfigurations, anywherev1.WorkerNodeGroupConfiguration{
			Name: name, Count: ptr.To(n), MachineGroupRef: &anywherev1.Ref{Name: name},
		})
		c.Machines[name] = &anywherev1.PacketMachineConfig{Spec: anywherev1.PacketMachineConfigSpec{MachineType: "big"}}
	}
	return c
}

func TestUnavailableMachinesAreReported(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		answer string
		want   string
	}{
		"enough":               {http.StatusOK, `{"servers":[{"quantity":5,"available":true}]}`, ""},
		"not enough":           {http.StatusOK, `{"servers":[{"quantity":5,"available":false}]}`, "not enough machines: 5 of plan big in am needed"},
		"no such plan":         {http.StatusUnprocessableEntity, `{"errors":["Plan big is not valid"]}`, "Plan big is not valid"},
		"credentials that end": {http.StatusUnauthorized, `{"error":"Invalid authentication token"}`, "rejected the credentials"},
		"an API that is down":  {http.StatusServiceUnavailable, ``, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/capacity/metros" || r.Header.Get("X-Auth-Token") != "secret" {
					t.Errorf("got an unexpected request for %s", r.URL.Path)
				}
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.answer))
			}))
			defer server.Close()
			problems := canHave(t.Context(), nil, access.Credentials{URL: server.URL, Token: "secret"}, []demand.Machines{{Plan: "big", Metro: "am", Count: 5}})
			err := errors.Join(problems...)
			if (tt.want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("problems: got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestMirrorCredentialsComeFromTheEnvironment(t *testing.T) {
	m := &Management{Config: &spec.Config{Cluster: &anywherev1.Cluster{}}}
	mirror := &anywherev1.RegistryMirrorConfiguration{Endpoint: "192.0.2.1"}
	for _, tt := range []struct {
		name, username, password string
		mirror                   *anywherev1.RegistryMirrorConfiguration
		authenticate             bool
		refused, written         bool
	}{
		{name: "no mirror", username: "developer", password: "x"},
		{name: "a mirror that asks for nothing", mirror: mirror, username: "developer", password: "x"},
		{name: "a mirror that asks", mirror: mirror, authenticate: true, username: "developer", password: "x", written: true},
		{name: "half of it", mirror: mirror, authenticate: true, username: "developer", refused: true},
	} {
		t.Setenv(registryUsername, tt.username)
		t.Setenv(registryPassword, tt.password)
		mirror.Authenticate = tt.authenticate
		m.Config.Cluster.Spec.RegistryMirrorConfiguration = tt.mirror
		problems := m.checkRegistry(t.Context(), nil)
		secret, _ := m.registryCredentials()
		if (len(problems) > 0) != tt.refused || (secret != nil) != tt.written {
			t.Errorf("%s: %v, and credentials: %t", tt.name, problems, secret != nil)
		}
		if secret != nil && (secret.Name != anywherev1.RegistryCredentials || string(secret.Data["username"]) != "developer" || string(secret.Data["password"]) != "x") {
			t.Errorf("%s: Secret %q with %d keys", tt.name, secret.Name, len(secret.Data))
		}
		if secret != nil && spec.DenyRegistry(secret, "default", "192.0.2.1") != "" {
			t.Errorf("%s: annotations are %v", tt.name, secret.Annotations)
		}
	}
}

func TestRegistryCredentialsKeepTheirBindings(t *testing.T) {
	m := &Management{}
	m.Config = &spec.Config{Cluster: &anywherev1.Cluster{}}
	m.Config.Cluster.Spec.RegistryMirrorConfiguration = &anywherev1.RegistryMirrorConfiguration{Endpoint: "192.0.2.1"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		anywherev1.CredentialsNamespacesAnnotation: "team-a, default", anywherev1.CredentialsEndpointsAnnotation: "mirror.example.com",
	}}}
	if !m.bindRegistry(secret) || m.bindRegistry(secret) {
		t.Error("the second time changed something, or the first did not")
	}
	for namespace, endpoint := range map[string]string{"team-a": "mirror.example.com", "default": "192.0.2.1"} {
		if problem := spec.DenyRegistry(secret, namespace, endpoint); problem != "" {
			t.Error(problem)
		}
	}
}
