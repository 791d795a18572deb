package manager

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/base/pki"
)

// certificateOf returns a client certificate of a CA.
func certificateOf(t *testing.T, ca *pki.Authority) *x509.Certificate {
	t.Helper()
	template := pki.Template(pkix.Name{CommonName: "api-server"}, nil, time.Now(), time.Hour)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	encoded, _, err := ca.Issue(template)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(encoded)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	ca, err := pki.NewAuthority("clients", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// TestRejectedCertificatesCostLittle floods webhooks with certificates of another CA, and then
// replaces the CA.
func TestRejectedCertificatesCostLittle(t *testing.T) {
	var out bytes.Buffer
	now, reads, ca, other := time.Now(), 0, newAuthority(t), newAuthority(t)
	c := &callers{log: newLogger(&out, logText, 0), now: func() time.Time { return now }}
	c.read = func(context.Context) (trust, error) {
		reads++
		roots, err := pki.Pool(ca.PEM())
		return trust{roots: roots}, err
	}
	webhook := c.guard("/validate", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	call := func(with *x509.Certificate) int {
		r := httptest.NewRequest(http.MethodPost, "/validate", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{with}}
		w := httptest.NewRecorder()
		webhook.ServeHTTP(w, r)
		return w.Code
	}
	foreign := certificateOf(t, other)
	for range 100 {
		if got := call(foreign); got != http.StatusUnauthorized {
			t.Fatalf("HTTP status %d", got)
		}
	}
	if lines := strings.Count(out.String(), "Rejected"); reads != 1 || lines != 1 {
		t.Errorf("100 rejections read the CA %d times and log %d lines", reads, lines)
	}
	ca = other
	now = now.Add(rereadInterval)
	if got := call(foreign); got != http.StatusOK || reads != 2 {
		t.Errorf("HTTP status %d after the CA was replaced and read %d times", got, reads)
	}
	call(certificateOf(t, newAuthority(t)))
	if !strings.Contains(out.String(), "rejected=100") {
		t.Errorf("rejections are not counted:\n%s", out.String())
	}
}
