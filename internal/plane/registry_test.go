package plane

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/registry"
)

func TestRegistryAddress(t *testing.T) {
	for address, want := range map[string][]string{
		"":           {"127.0.0.1:5000"},
		"127.0.0.1":  {"127.0.0.1:5000"},
		"198.18.0.1": {"127.0.0.1:5000", "198.18.0.1:5000"},
		"0.0.0.0":    {"0.0.0.0:5000"},
		"::":         {"[::]:5000"},
		"fd00::1":    {"127.0.0.1:5000", "[fd00::1]:5000"},
	} {
		got := Config{RegistryAddress: address, RegistryPort: 5000}.registryListens()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with address %q (-want +got):\n%s", address, diff)
		}
	}
}

func TestRegistryCertificateHasItsAddress(t *testing.T) {
	p := newPKI(t)
	ensure(t, p, Config{APIAddress: "127.0.0.1"})
	issued := ensure(t, p, Config{APIAddress: "127.0.0.1", RegistryAddress: "198.18.0.1"})
	if diff := cmp.Diff([]string{"registry"}, issued); diff != "" {
		t.Errorf("issued (-want +got):\n%s", diff)
	}
	cert, err := pki.LoadPair(p.home.certFile("registry"), p.home.keyFile("registry"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"198.18.0.1", "127.0.0.1", "localhost"} {
		if err := cert.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}

func TestRegistryPasswordIsGeneratedOnce(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	var passwords []string
	for range 2 {
		if err := h.ensureRegistryPassword(); err != nil {
			t.Fatal(err)
		}
		password, err := os.ReadFile(h.registryPasswordFile())
		if err != nil {
			t.Fatal(err)
		}
		passwords = append(passwords, string(password))
	}
	if passwords[0] != passwords[1] || len(passwords[0]) < 20 {
		t.Error("there is another password after a restart, or none to speak of")
	}
	info, err := os.Stat(h.registryPasswordFile())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
}

// registryPlane is a plane with only a registry.
func registryPlane(t *testing.T) *Plane {
	t.Helper()
	files := newPKI(t)
	config, err := Config{}.complete(Options{})
	if err != nil {
		t.Fatal(err)
	}
	ensure(t, files, config)
	h := files.home
	if err := errors.Join(h.writeMeta("v1.36.3", files.now), writeJSON(h.configFile(), config), h.ensureRegistryPassword()); err != nil {
		t.Fatal(err)
	}
	return &Plane{home: files.home, config: config, probes: newProber(files.home), log: slog.New(slog.DiscardHandler)}
}

func TestRegistryServesDroverCharts(t *testing.T) {
	p := registryPlane(t)
	c := p.launch(p.registry())
	t.Cleanup(c.stop)
	select {
	case <-c.served:
	case <-c.hopeless:
		t.Fatal(c.startError())
	}
	r, err := ReadRegistry(p.home)
	if err != nil {
		t.Fatal(err)
	}
	client, err := registry.Connect(registry.Access{URL: r.URL, CAFile: r.CAFile, PasswordFile: r.PasswordFile})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.List(t.Context())
	if err != nil || !slices.ContainsFunc(list, func(r registry.Repository) bool { return r.Name == "charts/cni" }) {
		t.Errorf("it has %v (%v)", list, err)
	}
	c.stop()
	if _, err := client.List(t.Context()); err == nil {
		t.Error("it answers after its end")
	}
}

func TestRegistryWithoutPortIsReported(t *testing.T) {
	p := registryPlane(t)
	p.config.RegistryPort = listen(t)
	c := p.launch(p.registry())
	t.Cleanup(c.stop)
	<-c.hopeless
	if e := c.startError(); !strings.Contains(e.Error(), "starting the registry: listen") {
		t.Error(e)
	}
}

func TestReadRegistryNeedsAPlane(t *testing.T) {
	if _, err := ReadRegistry(Home{Dir: t.TempDir()}); !errors.Is(err, ErrNoPlane) {
		t.Errorf("got error %v, want %v", err, ErrNoPlane)
	}
}
