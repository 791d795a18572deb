package manager_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/pki"
)

// clientCA issues client certificates.
type clientCA struct {
	*pki.Authority

	file string
}

func newClientCA(t *testing.T) *clientCA {
	t.Helper()
	a, err := pki.NewAuthority("clients", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c := &clientCA{Authority: a, file: filepath.Join(t.TempDir(), "ca.crt")}
	if err := os.WriteFile(c.file, a.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// issue returns the certificate of a user.
func (c *clientCA) issue(t *testing.T, name string, groups ...string) *tls.Certificate {
	t.Helper()
	template := pki.Template(pkix.Name{CommonName: name, Organization: groups}, nil, time.Now(), time.Hour)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	cert, key, err := c.Issue(template)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

// send sends a request, with a client certificate or without, and returns the HTTP status.
func send(t *testing.T, method, url, body string, with *tls.Certificate) int {
	t.Helper()
	trusting := &tls.Config{InsecureSkipVerify: true}
	if with != nil {
		trusting.Certificates = []tls.Certificate{*with}
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// forged is an AdmissionReview that puts a deletion on record that nobody asked for.
const forged = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
  "uid": "x", "kind": {"group": "anywhere.eks.amazonaws.com", "version": "v1alpha1", "kind": "Cluster"},
  "operation": "DELETE", "userInfo": {"username": "scapegoat"}, "oldObject": {
    "apiVersion": "anywhere.eks.amazonaws.com/v1alpha1", "kind": "Cluster",
    "metadata": {"name": "prod", "namespace": "default", "uid": "forged"}, "spec": {"managementCluster": {"name": "mgmt"}}}}}`

// TestOnlyTheAPIServerMayCallWebhooks forges an audit record, as any neighbor of the manager could.
func TestOnlyTheAPIServerMayCallWebhooks(t *testing.T) {
	server, trusting := ready(t)
	clients := newClientCA(t)
	m := launch(t, server.Kubeconfig(t), "--install=false", "--webhook-client-ca="+clients.file)
	m.awaitReady(t)
	const path = "/validate-anywhere-eks-amazonaws-com-v1alpha1-cluster"
	url := "https://" + m.webhook + path
	kinds := runtime.NewScheme()
	if err := droverv1.AddToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	records := func() int {
		all := &droverv1.AuditRecordList{}
		if err := c.List(t.Context(), all, client.MatchingLabels{droverv1.ClusterLabel: "prod"}); err != nil {
			t.Fatal(err)
		}
		return len(all.Items)
	}
	// A manager that does not know its API server believes everyone.
	elsewhere := strings.ReplaceAll(strings.ReplaceAll(forged, "prod", "elsewhere"), `"forged"`, `"forged-elsewhere"`)
	if got := send(t, http.MethodPost, "https://"+trusting.webhook+path, elsewhere, nil); got != http.StatusOK {
		t.Errorf("the attack itself fails with %d", got)
	}
	for name, with := range map[string]*tls.Certificate{
		"no certificate": nil,
		"another user's": clients.issue(t, "stranger"),
		"another CA's":   newClientCA(t).issue(t, config.WebhookClient),
	} {
		t.Run(name, func(t *testing.T) {
			if got := send(t, http.MethodPost, url, forged, with); got != http.StatusUnauthorized {
				t.Errorf("HTTP status %d, want %d", got, http.StatusUnauthorized)
			}
		})
	}
	if n := records(); n > 0 {
		t.Errorf("%d records were forged", n)
	}
	if got := send(t, http.MethodPost, url, forged, clients.issue(t, config.WebhookClient)); got != http.StatusOK || records() != 1 {
		t.Errorf("the API server gets %d, and there are %d records", got, records())
	}
}
