package managertest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-dev/drover/charts"
	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// Charts starts a registry that contains the chart of the network, like a plane's, and returns it
// with the flags of a manager that uses it.
func Charts(t testing.TB) (r *artifacttest.Registry, flags []string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r = artifacttest.NewRegistry(t, artifacttest.RegistryOptions{ServerOptions: artifacttest.ServerOptions{TLS: true}})
	archive, err := registry.Pack(charts.Files, "cni")
	must(err)
	version, err := charts.Version("cni")
	must(err)
	r.Push(t, artifacttest.Package{Name: "cni", Version: version, Archive: archive})
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	must(os.WriteFile(ca, r.CA, 0o600))
	return r, []string{"--registry-url=https://" + r.Host, "--registry-ca=" + ca, "--chart-cache=" + filepath.Join(dir, "charts")}
}
