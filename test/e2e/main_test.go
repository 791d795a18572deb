// Package e2e tests the program as its users run it: real processes, real etcd, a real API server.
// The test binary acts as drover if it is called by that name. Each test has its own home and runs
// in parallel with others.
package e2e

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drover-dev/drover/internal/cli"
	"github.com/drover-dev/drover/internal/metal/driver/local"
	"github.com/drover-dev/drover/internal/test/ports"
)

func TestMain(m *testing.M) {
	// Local machines are started by this program and run it as their first process.
	if code, ok := local.Main(os.Args); ok {
		os.Exit(code)
	}
	if filepath.Base(os.Args[0]) != "drover" {
		isolateFromUser()
	}
	drover := func() { os.Exit(cli.Main()) }
	// An image of this program runs the manager.
	commands := map[string]func(){"drover": drover, "manager": drover}
	if commands[filepath.Base(os.Args[0])] == nil {
		heldPorts = ports.Hold()
	}
	testscript.Main(m, commands)
}

// isolateFromUser separates tests from the user's machines: they have none unless requested, and
// never in the user's home.
func isolateFromUser() {
	for name, value := range map[string]string{"DROVER_METAL": "none", "DROVER_METAL_HOME": "/nonexistent/metal"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err) // names and values are constants
		}
	}
}

// heldPorts stay in use until the tests have ended.
var heldPorts []net.Listener
