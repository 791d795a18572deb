// Package e2e tests the program as its users run it: real processes, real
// etcd, a real API server. The test binary is drover when it is called so.
package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drover-dev/drover/internal/cli"
	"github.com/drover-dev/drover/internal/metal/driver/local"
)

func TestMain(m *testing.M) {
	beOfVersion()
	// Local machines are started by this program and run it as their first.
	if code, ok := local.Main(os.Args); ok {
		os.Exit(code)
	}
	if filepath.Base(os.Args[0]) != "drover" {
		keepApart()
	}
	drover := func() { os.Exit(cli.Main()) }
	// It is the manager where it is started from an image of itself.
	testscript.Main(m, map[string]func(){"drover": drover, "manager": drover})
}

// keepApart keeps tests away from the user's machines: they have none unless
// they ask for some, and never in the user's home.
func keepApart() {
	for name, value := range map[string]string{"DROVER_METAL": "none", "DROVER_METAL_HOME": "/nonexistent/metal"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err) // Names and values are constants.
		}
	}
}
