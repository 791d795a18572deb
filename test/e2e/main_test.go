// Package e2e tests the program as its users run it: real processes, real
// etcd, a real API server. The test binary is drover when it is called so.
package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-dev/drover/internal/cli"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "drover" {
		os.Exit(cli.Main())
	}
	os.Exit(m.Run())
}
