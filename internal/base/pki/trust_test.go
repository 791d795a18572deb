package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/base/pki"
)

func newCA(t *testing.T, name string) []byte {
	t.Helper()
	authority, err := pki.NewAuthority(name, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return authority.PEM()
}

// trusts reports whether the pool accepts a CA certificate as a root.
func trusts(t *testing.T, pool *x509.CertPool, ca []byte) bool {
	t.Helper()
	certs, err := pki.ParseCerts(ca)
	if err != nil {
		t.Fatal(err)
	}
	_, err = certs[0].Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err == nil
}

func TestPoolTrustsOnlyGivenCertificates(t *testing.T) {
	first, second, other := newCA(t, "first"), newCA(t, "second"), newCA(t, "other")
	pool, err := pki.Pool(append(first, second...))
	if err != nil {
		t.Fatal(err)
	}
	if !trusts(t, pool, first) || !trusts(t, pool, second) {
		t.Error("a given certificate is not trusted")
	}
	if trusts(t, pool, other) {
		t.Error("another certificate is trusted")
	}
}

func TestClientConfig(t *testing.T) {
	ca, other := newCA(t, "ca"), newCA(t, "other")
	for _, tc := range []struct {
		name string
		ca   []byte
		// roots is whether the configuration replaces the default pool.
		roots bool
	}{
		{"without a CA, the default pool is used", nil, false},
		{"with a CA, it is trusted as well", ca, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			config, err := pki.ClientConfig(tc.ca)
			if err != nil {
				t.Fatal(err)
			}
			if config.MinVersion != tls.VersionTLS12 || config.InsecureSkipVerify {
				t.Errorf("got TLS %x, skip verify %t", config.MinVersion, config.InsecureSkipVerify)
			}
			if (config.RootCAs != nil) != tc.roots {
				t.Fatalf("got roots %t, want %t", config.RootCAs != nil, tc.roots)
			}
			if tc.roots && (!trusts(t, config.RootCAs, ca) || trusts(t, config.RootCAs, other)) {
				t.Error("the pool doesn't trust exactly the given CA")
			}
		})
	}
}

func TestInvalidCAIsRejected(t *testing.T) {
	if _, err := pki.Pool([]byte("no PEM")); !errors.Is(err, pki.ErrNoCertificate) {
		t.Errorf("Pool: got %v", err)
	}
	if _, err := pki.Pool(nil); !errors.Is(err, pki.ErrNoCertificate) {
		t.Errorf("Pool of nothing: got %v", err)
	}
	if _, err := pki.ClientConfig([]byte("no PEM")); !errors.Is(err, pki.ErrNoCertificate) {
		t.Errorf("ClientConfig: got %v", err)
	}
}
