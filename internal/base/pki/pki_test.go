package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func newAuthority(t *testing.T, name string, now time.Time) *Authority {
	t.Helper()
	a, err := NewAuthority(name, now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestIssuedCertificatesAreTrusted(t *testing.T) {
	a := newAuthority(t, "ca", time.Now())
	dir := t.TempDir()
	for name, data := range map[string][]byte{"ca.crt": a.PEM(), "ca.key": a.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := LoadAuthority(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := loaded.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "server"}, DNSNames: []string{"example.com"}, NotBefore: time.Now(), NotAfter: time.Now().Add(time.Minute),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), DNSName: "example.com"}); err != nil {
		t.Error(err)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: newAuthority(t, "ca", time.Now()).Pool()}); err == nil {
		t.Error("another authority of that name trusts it")
	}
}

func TestEarlierAuthoritiesAreTrustedUntilTheyExpire(t *testing.T) {
	now := time.Now()
	old, older := newAuthority(t, "old", now), newAuthority(t, "older", now.Add(-2*time.Hour))
	a := newAuthority(t, "new", now)
	a.Trust(append(old.Certs, older.Certs...), now)
	certs, err := ParseCerts(a.PEM())
	if err != nil || len(certs) != 2 || certs[0].Subject.CommonName != "new" || certs[1].Subject.CommonName != "old" {
		t.Errorf("trusted are %d (%v)", len(certs), err)
	}
}

func TestRenewedAuthorityKeepsItsKey(t *testing.T) {
	now := time.Now()
	a := newAuthority(t, "ca", now)
	other := newAuthority(t, "other", now)
	a.Trust(other.Certs, now)
	for _, tc := range []struct {
		name string
		at   time.Time
		want int // certificates
	}{
		{"before it is valid", now.Add(-24 * time.Hour), 3},
		{"before it expires", now.Add(50 * time.Minute), 3},
		{"after it expired", now.Add(24 * time.Hour), 1},
	} {
		next, err := a.Renew(tc.at, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if Due(next.Certs[0], tc.at) || !next.Certs[0].PublicKey.(*ecdsa.PublicKey).Equal(a.signer.Public()) || len(next.Certs) != tc.want {
			t.Errorf("renewed %s, it has %d certificates, from %s", tc.name, len(next.Certs), next.Certs[0].NotBefore)
		}
		if parsed, err := ParseAuthority(next.PEM(), a.Key); err != nil || parsed.Certs[0].Subject.CommonName != "ca" {
			t.Errorf("renewed %s, it can't be read: %v", tc.name, err)
		}
	}
	behind, err := a.Renew(now.Add(-24*time.Hour), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	again, err := behind.Renew(now, time.Hour)
	if err != nil || !again.Certs[0].Equal(a.Certs[0]) || len(again.Certs) != 2 {
		t.Errorf("its earlier certificate is not used again: %d certificates, %v", len(again.Certs), err)
	}
}

func TestKeysAreReadInEveryEncoding(t *testing.T) {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	prime, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(prime)
	if err != nil {
		t.Fatal(err)
	}
	for form, der := range map[string][]byte{"EC PRIVATE KEY": sec1, "RSA PRIVATE KEY": x509.MarshalPKCS1PrivateKey(prime), "PRIVATE KEY": pkcs8} {
		if _, err := ParseKey(pem.EncodeToMemory(&pem.Block{Type: form, Bytes: der})); err != nil {
			t.Errorf("%s: %v", form, err)
		}
	}
	for name, data := range map[string][]byte{"nothing": nil, "no PEM": []byte("garbage"), "no key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("garbage")})} {
		if _, err := ParseKey(data); err == nil {
			t.Errorf("%s is taken for a key", name)
		}
	}
}

func TestMismatchedKeyIsRejected(t *testing.T) {
	a, b := newAuthority(t, "a", time.Now()), newAuthority(t, "b", time.Now())
	if _, err := ParseAuthority(a.PEM(), b.Key); err == nil {
		t.Error("they are taken for a pair")
	}
	if _, err := ParseAuthority(nil, a.Key); err == nil {
		t.Error("a key alone is taken for an authority")
	}
}
