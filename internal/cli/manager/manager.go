// Package manager is the command line of the manager: `drover manager`, and the separate program
// cmd/manager. It parses flags and loads the kubeconfig; internal/manager does the work.
package manager

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/manager"
	"github.com/drover-dev/drover/internal/operate/kubeconfig"
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
	file := ""
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
			cfg, err := connect(file)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return manager.Run(ctx, cfg, options)
		},
	}
	cmd.Flags().StringVarP(&file, "kubeconfig", "k", "", "kubeconfig of the cluster to manage (default $KUBECONFIG, else in-cluster)")
	options.AddFlags(cmd.Flags())
	return cmd
}

// connect uses the named file or those of $KUBECONFIG. Without either, it uses the configuration of
// the Pod that it runs in, or else the kubeconfig in the home directory.
func connect(file string) (*rest.Config, error) {
	if file == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if config, err := rest.InClusterConfig(); !errors.Is(err, rest.ErrNotInCluster) {
			return config, err
		}
	}
	config, err := kubeconfig.Connect(file)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster to manage: %w: name its kubeconfig with --kubeconfig", err)
	}
	return config, nil
}
