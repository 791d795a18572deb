// Command manager runs only Drover's controllers and webhooks. It is the entry point of the image
// that "make docker-build" builds for provider-components.yaml; it contains neither the embedded
// plane nor Kubernetes, which keeps that image small.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/drover-dev/drover/internal/cli/manager"
)

func main() {
	if err := manager.NewCommand().ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}
