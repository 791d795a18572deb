package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTemplateSeparatesNamesFromAddresses(t *testing.T) {
	got := Template(pkix.Name{CommonName: "server"}, []string{"localhost", "127.0.0.1", "::1", "example.com"}, time.Now(), time.Hour)
	if diff := cmp.Diff([]string{"localhost", "example.com"}, got.DNSNames); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if len(got.IPAddresses) != 2 || got.IPAddresses[0].String() != "127.0.0.1" || got.IPAddresses[1].String() != "::1" {
		t.Errorf("addresses: %v", got.IPAddresses)
	}
}

func TestTemplateToleratesClockSkew(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	got := Template(pkix.Name{}, nil, now, time.Hour)
	if !got.NotBefore.Before(now) || !got.NotAfter.Equal(now.Add(time.Hour)) {
		t.Errorf("valid from %s to %s", got.NotBefore, got.NotAfter)
	}
	if at := IssuedAt(got); !at.Equal(now) {
		t.Errorf("issued at %s, want %s", at, now)
	}
}

func TestCovers(t *testing.T) {
	cert := Template(pkix.Name{}, []string{"localhost", "127.0.0.1"}, time.Now(), time.Hour)
	for _, tt := range []struct {
		name  string
		hosts []string
		want  bool
	}{
		{"no host", nil, true},
		{"a name and an address", []string{"127.0.0.1", "localhost"}, true},
		{"another name", []string{"localhost", "example.com"}, false},
		{"another address", []string{"192.0.2.1"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Covers(cert, tt.hosts); got != tt.want {
				t.Errorf("Covers(%v) = %t", tt.hosts, got)
			}
		})
	}
}

func TestRenewAtLeavesAThirdOfTheLifetime(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	cert := &x509.Certificate{NotBefore: start, NotAfter: start.Add(90 * 24 * time.Hour)}
	if got, want := RenewAt(cert), start.Add(60*24*time.Hour); !got.Equal(want) {
		t.Errorf("renewed at %s, want %s", got, want)
	}
}

func TestCertificateIsDueBeforeItIsValid(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		issued time.Time
		want   bool
	}{
		{"issued now", now, false},
		{"issued within the tolerated skew", now.Add(skew), false},
		{"issued by a clock that was a year ahead", now.AddDate(1, 0, 0), true},
		{"issued by a clock that was minutes ahead", now.Add(2 * skew), true},
		{"issued three quarters of its lifetime ago", now.Add(-68 * 24 * time.Hour), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Due(Template(pkix.Name{}, nil, tt.issued, 90*24*time.Hour), now); got != tt.want {
				t.Errorf("due: %t", got)
			}
		})
	}
}

func TestIssuedCertificatesAreNotCAs(t *testing.T) {
	now := time.Now()
	a := newAuthority(t, "ca", now)
	template := Template(pkix.Name{CommonName: "intermediate"}, nil, now, time.Hour)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	certPEM, key, err := a.Issue(template)
	if err != nil {
		t.Fatal(err)
	}
	intermediate, err := ParseAuthority(certPEM, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, _, err := intermediate.Issue(Template(pkix.Name{CommonName: "leaf"}, []string{"localhost"}, now, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	certs, err := ParseCerts(leaf)
	if err != nil {
		t.Fatal(err)
	}
	options := x509.VerifyOptions{Roots: a.Pool(), Intermediates: intermediate.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	if _, err := certs[0].Verify(options); err == nil {
		t.Error("a certificate of an intermediate authority is trusted")
	}
}
