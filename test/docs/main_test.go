// Package docs executes the pages of the documentation: commands run as a reader would run them,
// one after the other in an empty directory, and manifests are sent to the webhooks of a real
// plane. A block that is neither executed nor skipped for a stated reason fails the test.
//
// Package page describes the comments that control this. Start with TestPagesOnASharedPlane.
package docs

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

// TestMain lets the test binary be the programs that pages use.
func TestMain(m *testing.M) {
	// Local machines are started by this program and run it as their first.
	if code, ok := local.Main(os.Args); ok {
		os.Exit(code)
	}
	drover := func() { os.Exit(cli.Main()) }
	commands := map[string]func(){
		"drover": drover,
		// It is the manager where it is started from an image of itself.
		"manager": drover,
		"kubectl": func() {
			os.Args = append([]string{"drover", "kubectl"}, os.Args[1:]...)
			drover()
		},
	}
	if commands[filepath.Base(os.Args[0])] == nil {
		heldPorts = ports.Hold()
	}
	testscript.Main(m, commands)
}

// heldPorts stay in use until the tests have ended.
var heldPorts []net.Listener
