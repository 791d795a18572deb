// Command manager runs Drover's controllers and webhooks, as the image of provider-components.yaml
// does.
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
