// Command components renders provider-components.yaml: everything that `kubectl apply` needs to run
// the manager in a cluster.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/drover-dev/drover/config"
)

func main() {
	image := flag.String("image", "", "image of the manager")
	out := flag.String("o", "", "file to write (default standard output)")
	flag.Parse()
	if err := run(*image, *out); err != nil {
		fmt.Fprintln(os.Stderr, "rendering components:", err)
		os.Exit(1)
	}
}

func run(image, out string) error {
	if image == "" {
		return errors.New("no image: name one with --image, such as the output of make image-name")
	}
	if out == "" {
		_, err := os.Stdout.Write(config.Render(image))
		return err
	}
	return os.WriteFile(out, config.Render(image), 0o644)
}
