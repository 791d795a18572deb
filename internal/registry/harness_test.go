package registry_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// world is a registry that can be stopped and started, and its owner's credentials.
type world struct {
	t         *testing.T
	options   registry.Options
	authority *pki.Authority
	address   string
	server    *registry.Server
	stop      func()
	access    registry.Access
}

// newWorld starts a registry with charts that stops with the test.
func newWorld(t *testing.T, charts fs.FS) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{
		t: t,
		options: registry.Options{
			Dir: filepath.Join(dir, "registry"), CertFile: filepath.Join(dir, "registry.crt"), KeyFile: filepath.Join(dir, "registry.key"),
			PasswordFile: filepath.Join(dir, "password"), Charts: charts, Log: slog.New(slog.DiscardHandler),
		},
		access: registry.Access{CAFile: filepath.Join(dir, "ca.crt"), PasswordFile: filepath.Join(dir, "password")},
	}
	var err error
	w.authority, err = pki.NewAuthority("test", time.Now(), time.Hour)
	must(t, err)
	must(t, os.WriteFile(w.access.CAFile, w.authority.PEM(), 0o600))
	must(t, os.WriteFile(w.options.PasswordFile, []byte("sesame\n"), 0o600))
	w.issue("registry")
	w.start()
	return w
}

// issue writes a certificate with an identifying name.
func (w *world) issue(name string) {
	w.t.Helper()
	cert, key, err := w.authority.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	must(w.t, err)
	must(w.t, os.WriteFile(w.options.KeyFile, key, 0o600))
	must(w.t, os.WriteFile(w.options.CertFile, cert, 0o600))
}

// start serves at a new address: somebody else may have taken the previous one.
func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	server, err := registry.Open(ctx, w.options)
	must(w.t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(w.t, err)
	w.server, w.address = server, listener.Addr().String()
	w.access.URL = "https://" + w.address
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("serving: %v", err)
		}
	}
	w.t.Cleanup(w.stop)
}

func (w *world) client() *registry.Client {
	w.t.Helper()
	c, err := registry.Connect(w.access)
	must(w.t, err)
	return c
}

func (w *world) push(name, version string) registry.Pushed {
	w.t.Helper()
	pushed, err := w.client().Push(w.t.Context(), "charts", chart(w.t, name, version))
	must(w.t, err)
	return pushed
}

// pull pulls a chart as the manager does, with only the CA.
func (w *world) pull(name, version string) ([]byte, error) {
	w.t.Helper()
	store, err := artifact.Open(artifact.Options{
		Dir: w.t.TempDir(), Trust: map[string]artifact.Access{w.address: {CA: w.authority.PEM()}},
	})
	must(w.t, err)
	defer store.Close()
	ref := artifact.Ref{URL: "oci://" + w.address + "/charts", Name: name, Version: version}
	resolved, err := store.Resolve(w.t.Context(), ref)
	if err != nil {
		return nil, err
	}
	return store.Fetch(w.t.Context(), ref, resolved)
}

func chart(t testing.TB, name, version string) *registry.Chart {
	t.Helper()
	c, err := registry.ReadChart(artifacttest.Chart(t, name, version, nil))
	must(t, err)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// times returns when each file was written.
func (w *world) times() string {
	w.t.Helper()
	var out strings.Builder
	must(w.t, filepath.WalkDir(w.options.Dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(&out, path, info.ModTime().UnixNano())
		return err
	}))
	return out.String()
}
