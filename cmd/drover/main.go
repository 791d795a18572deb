// Command drover is the whole product in one program.
package main

import (
	"os"

	"github.com/drover-dev/drover/internal/cli"
)

func main() {
	os.Exit(cli.Main())
}
