// Package kubectl runs the kubectl of the Kubernetes version in Drover.
package kubectl

import (
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/plane"
)

// NewCommand builds `drover kubectl`.
func NewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [ARGUMENT...]",
		Short: "Run the built-in kubectl, by default against the embedded plane",
		Long: `Run the kubectl in Drover. Without $KUBECONFIG and --kubeconfig it uses the
embedded plane in $DROVER_HOME.`,
		Example: `  drover kubectl get clusters.cluster.x-k8s.io -A
  drover kubectl apply -f cluster.yaml`,
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return run(args) },
	}
}

// run becomes kubectl, so that signals, terminals and exit codes are its own.
func run(args []string) error {
	binary, err := kube.Find(kube.FindOptions{})
	if err != nil {
		return err
	}
	if os.Getenv("KUBECONFIG") == "" {
		home := plane.Home{Dir: plane.DefaultHome()}
		if err := os.Setenv("KUBECONFIG", home.Kubeconfig()); err != nil {
			return fmt.Errorf("setting KUBECONFIG: %w", err)
		}
	}
	argv := append([]string{"kubectl"}, args...)
	if err := syscall.Exec(binary.Path, argv, os.Environ()); err != nil {
		return fmt.Errorf("running kubectl in %q: %w", binary.Path, err)
	}
	return nil
}
