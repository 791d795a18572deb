package plane

import (
	"crypto/x509"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/base/pki"
)

var allLeaves = []string{"etcd", "etcd-client", "apiserver", "controller-manager", "manager", "supervisor", "admin", "registry"}

func newPKI(t *testing.T) PKI {
	t.Helper()
	h := Home{Dir: t.TempDir()}
	if err := errors.Join(h.makeRoot(), h.makeRest()); err != nil {
		t.Fatal(err)
	}
	return PKI{home: h, now: time.Now()}
}

func ensure(t *testing.T, p PKI, c Config) []string {
	t.Helper()
	issued, err := p.Ensure(c)
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

// verify checks every certificate as a peer would at the given time.
func verify(t *testing.T, p PKI, at time.Time) {
	t.Helper()
	for _, l := range leaves(Config{APIAddress: "127.0.0.1"}) {
		roots := x509.NewCertPool()
		certs, err := pki.LoadCerts(p.home.certFile(l.ca))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range certs {
			roots.AddCert(c)
		}
		cert, err := pki.LoadPair(p.home.certFile(l.name), p.home.keyFile(l.name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: l.usage}); err != nil {
			t.Errorf("certificate %q is not trusted: %v", l.name, err)
		}
	}
}

func TestEnsureIssuesEverythingOnce(t *testing.T) {
	p, c := newPKI(t), Config{APIAddress: "127.0.0.1"}
	if diff := cmp.Diff(allLeaves, ensure(t, p, c)); diff != "" {
		t.Errorf("first time (-want +got):\n%s", diff)
	}
	if again := ensure(t, p, c); again != nil {
		t.Errorf("second time issued %v, want nothing", again)
	}
	verify(t, p, p.now)
}

func TestEnsureRenewsBeforeExpiry(t *testing.T) {
	p, c := newPKI(t), Config{APIAddress: "127.0.0.1"}
	ensure(t, p, c)
	early := p
	early.now = p.now.Add(leafLifetime / 2)
	if issued := ensure(t, early, c); issued != nil {
		t.Errorf("half-way issued %v, want nothing", issued)
	}
	late := p
	late.now = p.now.Add(leafLifetime * 3 / 4)
	if diff := cmp.Diff(allLeaves, ensure(t, late, c)); diff != "" {
		t.Errorf("after three quarters (-want +got):\n%s", diff)
	}
	verify(t, late, p.now.Add(leafLifetime+time.Hour))
}

func TestEnsureReplacesACAWithoutBreakingTrust(t *testing.T) {
	p, c := newPKI(t), Config{APIAddress: "127.0.0.1"}
	ensure(t, p, c)
	before, err := pki.LoadCerts(p.home.certFile("ca"))
	if err != nil {
		t.Fatal(err)
	}
	late := p
	late.now = p.now.Add(caLifetime * 3 / 4)
	ensure(t, late, c)
	after, err := pki.LoadCerts(p.home.certFile("ca"))
	if err != nil {
		t.Fatal(err)
	}
	if len(after) != 2 || after[0].Equal(before[0]) || !after[1].Equal(before[0]) {
		t.Fatalf("the bundle holds %d certificates, want the new one before the old one", len(after))
	}
	verify(t, late, late.now)
}

func TestExpiredCAIsNotTrusted(t *testing.T) {
	p, c := newPKI(t), Config{APIAddress: "127.0.0.1"}
	ensure(t, p, c)
	late := p
	late.now = p.now.Add(caLifetime + time.Hour)
	ensure(t, late, c)
	if certs, err := pki.LoadCerts(p.home.certFile("ca")); err != nil || len(certs) != 1 {
		t.Errorf("the bundle holds %d certificates (%v), want only the new one", len(certs), err)
	}
}

func TestEnsureRepairsIncompleteFiles(t *testing.T) {
	tests := map[string]struct {
		damage func(Home) error
		want   []string
	}{
		"a certificate without its key":   {func(h Home) error { return os.Remove(h.keyFile("admin")) }, []string{"admin"}},
		"a key without its certificate":   {func(h Home) error { return os.Remove(h.certFile("manager")) }, []string{"manager"}},
		"a key of another certificate":    {func(h Home) error { return os.Rename(h.keyFile("etcd"), h.keyFile("apiserver")) }, []string{"etcd", "apiserver"}},
		"an empty certificate":            {func(h Home) error { return os.Truncate(h.certFile("supervisor"), 0) }, []string{"supervisor"}},
		"an authority whose key is gone":  {func(h Home) error { return os.Remove(h.keyFile("etcd-ca")) }, []string{"etcd", "etcd-client"}},
		"no key for the service accounts": {func(h Home) error { return os.Remove(h.keyFile("service-account")) }, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, c := newPKI(t), Config{APIAddress: "127.0.0.1"}
			ensure(t, p, c)
			if err := tt.damage(p.home); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, ensure(t, p, c)); diff != "" {
				t.Errorf("issued (-want +got):\n%s", diff)
			}
			verify(t, p, p.now)
		})
	}
}

func TestEnsureFollowsNewNames(t *testing.T) {
	p := newPKI(t)
	ensure(t, p, Config{APIAddress: "127.0.0.1"})
	issued := ensure(t, p, Config{APIAddress: "127.0.0.1", SANs: []string{"mgmt.example.com", "10.9.8.7"}})
	if diff := cmp.Diff([]string{"apiserver"}, issued); diff != "" {
		t.Errorf("issued (-want +got):\n%s", diff)
	}
	cert, err := pki.LoadPair(p.home.certFile("apiserver"), p.home.keyFile("apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mgmt.example.com", "10.9.8.7", "localhost"} {
		if err := cert.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}

func TestKeysAreReadableByTheirOwnerOnly(t *testing.T) {
	p, c := newPKI(t), Config{APIAddress: "127.0.0.1", APIPort: 6443}
	ensure(t, p, c)
	if err := p.home.writeKubeconfigs(c); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(p.home.pkiDir())
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{p.home.Kubeconfig(), p.home.componentKubeconfig("manager")}
	for _, f := range files {
		paths = append(paths, p.home.path("pki", f.Name()))
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", path, info.Mode().Perm())
		}
	}
}
