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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/test/kubetest"
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
	return sendWithToken(t, method, url, body, with, "")
}

// sendWithToken is send with a token, unless it is empty.
func sendWithToken(t *testing.T, method, url, body string, with *tls.Certificate, token string) int {
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
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// forgedPath is the webhook that records deletions.
const forgedPath = "/validate-anywhere-eks-amazonaws-com-v1alpha1-cluster"

// forged is an AdmissionReview that puts a deletion on record that nobody asked for.
const forged = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
  "uid": "x", "kind": {"group": "anywhere.eks.amazonaws.com", "version": "v1alpha1", "kind": "Cluster"},
  "operation": "DELETE", "userInfo": {"username": "scapegoat"}, "oldObject": {
    "apiVersion": "anywhere.eks.amazonaws.com/v1alpha1", "kind": "Cluster",
    "metadata": {"name": "prod", "namespace": "default", "uid": "forged"}, "spec": {"managementCluster": {"name": "mgmt"}}}}}`

// recordsOf counts the audit records of a cluster.
func recordsOf(t *testing.T, server *kubetest.Server, cluster string) int {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := droverv1.AddToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	all := &droverv1.AuditRecordList{}
	if err := c.List(t.Context(), all, client.MatchingLabels{droverv1.ClusterLabel: cluster}); err != nil {
		t.Fatal(err)
	}
	return len(all.Items)
}

// TestOnlyTheAPIServerMayCallWebhooks forges an audit record, as any neighbor of the manager could.
func TestOnlyTheAPIServerMayCallWebhooks(t *testing.T) {
	server, trusting := ready(t)
	clients := newClientCA(t)
	m := launch(t, server.Kubeconfig(t), "--install=false", "--webhook-client-ca="+clients.file)
	m.awaitReady(t)
	url := "https://" + m.webhook + forgedPath
	records := func() int { return recordsOf(t, server, "prod") }
	// A manager that does not know its API server believes everyone.
	elsewhere := strings.ReplaceAll(strings.ReplaceAll(forged, "prod", "elsewhere"), `"forged"`, `"forged-elsewhere"`)
	if got := send(t, http.MethodPost, "https://"+trusting.webhook+forgedPath, elsewhere, nil); got != http.StatusOK {
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

// TestOnlyTheAccountOfTheAPIServerMayCallWebhooks forges an audit record where API servers identify
// themselves with the token of a service account.
func TestOnlyTheAccountOfTheAPIServerMayCallWebhooks(t *testing.T) {
	server, _ := ready(t)
	account := server.Namespace(t)
	mine := newAccount(t, server, account, "api-server")
	m := launch(t, server.Kubeconfig(t), "--install=false", "--webhook-client-account=system:serviceaccount:"+account+":api-server")
	m.awaitReady(t)
	url := "https://" + m.webhook + forgedPath
	review := strings.ReplaceAll(strings.ReplaceAll(forged, "prod", "by-token"), `"forged"`, `"forged-by-token"`)
	for name, token := range map[string]string{
		"no token":           "",
		"an invalid token":   "garbage",
		"a forged token":     mine[:len(mine)-8] + "AAAAAAAA",
		"of another account": newAccount(t, server, account, "stranger"),
		"of a namesake":      newAccount(t, server, server.Namespace(t), "api-server"),
	} {
		t.Run(name, func(t *testing.T) {
			if got := sendWithToken(t, http.MethodPost, url, review, nil, token); got != http.StatusUnauthorized {
				t.Errorf("HTTP status %d, want %d", got, http.StatusUnauthorized)
			}
		})
	}
	if n := recordsOf(t, server, "by-token"); n > 0 {
		t.Errorf("%d records were forged", n)
	}
	for range 2 { // the second time from the cache
		if got := sendWithToken(t, http.MethodPost, url, review, nil, mine); got != http.StatusOK || recordsOf(t, server, "by-token") != 1 {
			t.Errorf("the API server gets %d, and there are %d records", got, recordsOf(t, server, "by-token"))
		}
	}
}

// newAccount creates a service account and returns a token of it.
func newAccount(t *testing.T, server *kubetest.Server, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := server.Clientset(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return token(t.Context(), t, server, namespace, name)
}
