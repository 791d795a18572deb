// Command drover is the whole product in one program.
package main

import (
	"os"

	"github.com/drover-dev/drover/internal/cli"
	"github.com/drover-dev/drover/internal/metal/driver/local"
)

func main() {
	// Local machines are started by this program and run it as their first.
	if code, ok := local.Main(os.Args); ok {
		os.Exit(code)
	}
	os.Exit(cli.Main())
}
