// Package manager is the command line of the manager: `drover manager`, and the separate program
// cmd/manager. It parses flags and loads the kubeconfig; internal/manager does the work.
package manager

import (
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/manager"
)

const long = `Run all controllers and webhooks of Drover in one process, for the cluster of --kubeconfig, $KUBECONFIG,
or the cluster that the process runs in.

Cluster API's core, kubeadm bootstrap and kubeadm control plane providers are included. The manager
installs the definitions it requires, unless --install=false, and issues its webhook certificates.`

const example = `  # For a cluster that reaches this machine at 192.0.2.10:
  drover manager --kubeconfig ~/.kube/config --webhook-url https://192.0.2.10:9443

  # Inside a cluster where provider-components.yaml was applied:
  drover manager --install=false --leader-elect`

// NewCommand returns the command `manager`.
func NewCommand() *cobra.Command {
	options := manager.DefaultOptions()
	kubeconfig := ""
	cmd := &cobra.Command{
		Use:           "manager",
		Short:         "Run the controllers and webhooks",
		Long:          long,
		Example:       example,
		Args:          cobra.NoArgs,
		Version:       version.Get().Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.Validate(); err != nil {
				return err
			}
			cfg, err := loadConfig(kubeconfig)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return manager.Run(ctx, cfg, options)
		},
	}
	cmd.Flags().StringVarP(&kubeconfig, "kubeconfig", "k", "", "kubeconfig of the cluster to manage (default $KUBECONFIG, else in-cluster)")
	options.AddFlags(cmd.Flags())
	return cmd
}

// loadConfig reads the named file, or those of $KUBECONFIG and the home directory, or the
// configuration of a Pod.
func loadConfig(file string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("loading a kubeconfig: %w: set --kubeconfig", err)
	}
	return cfg, nil
}
