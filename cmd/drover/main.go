// Command drover is the whole product: commands, embedded plane, manager and local machines.
package main

import (
	"os"

	"github.com/drover-dev/drover/internal/cli"
	"github.com/drover-dev/drover/internal/metal/driver/local"
	"github.com/drover-dev/drover/internal/metal/driver/server/agent"
)

func main() {
	// This program starts local machines, and is their first process.
	if code, ok := local.Main(os.Args); ok {
		os.Exit(code)
	}
	// It is the agent on servers that users own.
	if code, ok := agent.Main(os.Args); ok {
		os.Exit(code)
	}
	os.Exit(cli.Main())
}
