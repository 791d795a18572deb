package e2e

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drover-dev/drover/internal/kube"
)

// TestScripts runs the program as scripts do. None of them starts a plane.
func TestScripts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	binary, err := kube.Find(kube.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("TAKEN_PORT", strconv.Itoa(taken.Addr().(*net.TCPAddr).Port))
			env.Setenv(kube.EnvDir, filepath.Dir(binary.Path))
			env.Setenv("DROVER_HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("DROVER_METAL_HOME", filepath.Join(env.WorkDir, "metal"))
			return nil
		},
	})
}
