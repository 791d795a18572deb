package plane

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/base/pki"
)

var allLeaves = []string{"etcd", "etcd-client", "apiserver", "controller-manager", "manager", "webhook-client", "supervisor", "admin", "registry"}

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
	return issued.Leaves
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
		"a certificate without its key":                    {func(h Home) error { return os.Remove(h.keyFile("admin")) }, []string{"admin"}},
		"a key without its certificate":                    {func(h Home) error { return os.Remove(h.certFile("manager")) }, []string{"manager"}},
		"a key of another certificate":                     {func(h Home) error { return os.Rename(h.keyFile("etcd"), h.keyFile("apiserver")) }, []string{"etcd", "apiserver"}},
		"an empty certificate":                             {func(h Home) error { return os.Truncate(h.certFile("supervisor"), 0) }, []string{"supervisor"}},
		"an authority whose key is absent from a new home": {func(h Home) error { return os.Remove(h.keyFile("etcd-ca")) }, []string{"etcd", "etcd-client"}},
		"no key for the service accounts in a new home":    {func(h Home) error { return os.Remove(h.keyFile("service-account")) }, nil},
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

func TestAClockThatWasAheadLeavesNothingInvalid(t *testing.T) {
	p, c := newPKI(t), Config{APIAddress: "127.0.0.1"}
	ahead := p
	ahead.now = p.now.AddDate(1, 0, 0)
	ensure(t, ahead, c)
	write(t, p.home.path("etcd", "member", "wal"), "data")
	before := authorities(t, p)
	issued, err := p.Ensure(c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Issued{[]string{"ca", "etcd-ca"}, allLeaves}, issued); diff != "" {
		t.Errorf("issued (-want +got):\n%s", diff)
	}
	verify(t, p, p.now)
	if again, err := p.Ensure(c); err != nil || len(again.Authorities)+len(again.Leaves) > 0 {
		t.Errorf("issued %v again, %v", again, err)
	}
	// The clock may have been right before, and be right again.
	ensure(t, ahead, c)
	verifyAgainst(t, p, before, ahead.now)
	late := p
	late.now = ahead.now.AddDate(11, 0, 0)
	ensure(t, late, c)
	verify(t, late, late.now)
}

// TestAClockThatWasBehindReplacesNoKey sets the clock back for a moment. Kubeconfigs of users,
// registries and other machines know the certificates of the CAs from before.
func TestAClockThatWasBehindReplacesNoKey(t *testing.T) {
	for name, jump := range map[string]int{"a year behind": -1, "a year ahead": 1, "eight years ahead": 8, "beyond the life of the CAs": 12} {
		t.Run(name, func(t *testing.T) {
			p, c := newPKI(t), Config{APIAddress: "127.0.0.1"}
			ensure(t, p, c)
			write(t, p.home.path("etcd", "member", "wal"), "data")
			before := authorities(t, p)
			wrong := p
			wrong.now = p.now.AddDate(jump, 0, 0)
			ensure(t, wrong, c)
			verify(t, p, wrong.now)
			ensure(t, p, c)
			verify(t, p, p.now)
			verifyAgainst(t, p, before, p.now)
			if after := authorities(t, p); !after["ca"].key.Equal(before["ca"].key) || !after["etcd-ca"].key.Equal(before["etcd-ca"].key) {
				t.Error("the key of a CA was replaced")
			}
		})
	}
}

// authority is a CA as its users know it.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func authorities(t *testing.T, p PKI) map[string]authority {
	t.Helper()
	out := map[string]authority{}
	for _, name := range []string{"ca", "etcd-ca"} {
		cert, err := pki.LoadPair(p.home.certFile(name), p.home.keyFile(name))
		if err != nil {
			t.Fatal(err)
		}
		key, err := pki.LoadKey(p.home.keyFile(name))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = authority{cert, key.(*ecdsa.PrivateKey)}
	}
	return out
}

// verifyAgainst checks every certificate as a peer would that knows the CAs from before.
func verifyAgainst(t *testing.T, p PKI, before map[string]authority, at time.Time) {
	t.Helper()
	for _, l := range leaves(Config{APIAddress: "127.0.0.1"}) {
		cert, err := pki.LoadPair(p.home.certFile(l.name), p.home.keyFile(l.name))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(before[l.ca].cert)
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: l.usage}); err != nil {
			t.Errorf("certificate %q is not trusted by clients of the earlier CA: %v", l.name, err)
		}
	}
}

// TestKeysOfAUsedHomeAreNeverReplaced makes files unreadable as a failing disk or a wrong
// permission would, and removes them.
func TestKeysOfAUsedHomeAreNeverReplaced(t *testing.T) {
	unreadable := func(file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) }
	truncated := func(file string) error { return os.Truncate(file, 10) }
	files := func(h Home) map[string]string {
		return map[string]string{
			"the CA's key": h.keyFile("ca"), "the CA's certificate": h.certFile("ca"), "etcd's CA": h.keyFile("etcd-ca"),
			"the key of service accounts": h.keyFile("service-account"), "the key of bundles": h.BundleKey(),
		}
	}
	for name := range files(Home{}) {
		for how, damage := range map[string]func(string) error{"is unreadable": unreadable, "is truncated": truncated, "is missing": os.Remove} {
			t.Run(name+" "+how, func(t *testing.T) {
				p, c := newPKI(t), Config{APIAddress: "127.0.0.1"}
				ensure(t, p, c)
				if err := p.home.ensureBundleKey(""); err != nil {
					t.Fatal(err)
				}
				write(t, p.home.path("etcd", "member", "wal"), "data")
				file := files(p.home)[name]
				if err := damage(file); err != nil {
					t.Fatal(err)
				}
				before, _ := os.ReadFile(file)
				_, err := p.Ensure(c)
				if err := errors.Join(err, p.home.ensureBundleKey("")); err == nil {
					t.Errorf("%s %s: got no error, want one that names the file", name, how)
				}
				if after, _ := os.ReadFile(file); !bytes.Equal(after, before) {
					t.Errorf("%s %s: got a new file of %d bytes, want it unchanged", name, how, len(after))
				}
			})
		}
	}
}

func TestUnreadableKeyOfANewHomeIsNotReplaced(t *testing.T) {
	p, c := newPKI(t), Config{APIAddress: "127.0.0.1"}
	ensure(t, p, c)
	if err := os.Truncate(p.home.keyFile("ca"), 10); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Ensure(c); err == nil || !strings.Contains(err.Error(), "certificate authority") {
		t.Errorf("got error %v, want one about the CA", err)
	}
	if info, err := os.Stat(p.home.keyFile("ca")); err != nil || info.Size() != 10 {
		t.Errorf("got key file %v, %v, want it unchanged", info, err)
	}
}

func TestClockJumps(t *testing.T) {
	for _, tt := range []struct {
		wall, passed time.Duration
		want         bool
	}{
		{time.Minute, time.Minute, false},
		{time.Minute + 2*time.Second, time.Minute, false},
		{365 * 24 * time.Hour, time.Minute, true},
		{-365 * 24 * time.Hour, time.Minute, true},
	} {
		if got := clockJumped(tt.wall, tt.passed); got != tt.want {
			t.Errorf("%s in %s: %t", tt.wall, tt.passed, got)
		}
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
