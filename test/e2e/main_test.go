// Package e2e tests the program as its users run it: real processes, real etcd, a real API server.
// The test binary is drover when it is called so. Each test has a home of its own and runs beside
// others.
package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
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
	commands := map[string]func(){"drover": drover, "manager": drover}
	if commands[filepath.Base(os.Args[0])] == nil {
		heldPorts = holdPorts()
	}
	testscript.Main(m, commands)
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

// heldPorts stay taken until the tests have ended.
var heldPorts []net.Listener

// holdPorts takes the ports that a plane asks for first, so that each plane has ports that no other
// one would choose while it is down: tests run side by side. A port that is taken already serves as
// well.
func holdPorts() []net.Listener {
	ports := []int{6443}
	for port := 5000; port < 5010; port++ {
		ports = append(ports, port)
	}
	var held []net.Listener
	for _, port := range ports {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			held = append(held, l)
		}
	}
	return held
}
