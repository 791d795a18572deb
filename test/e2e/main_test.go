// Package e2e tests the program as its users run it: real processes, real
// etcd, a real API server. The test binary is drover when it is called so.
package e2e

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drover-dev/drover/internal/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"drover": func() { os.Exit(cli.Main()) }})
}
