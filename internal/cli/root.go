// Package cli is the command line of Drover: one package per noun below it, which parses and
// prints. Start with NewCommand.
package cli

//go:generate go run ../../hack/docs ../../docs/cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/drover-dev/drover/internal/cli/addon"
	"github.com/drover-dev/drover/internal/cli/audit"
	"github.com/drover-dev/drover/internal/cli/bundle"
	"github.com/drover-dev/drover/internal/cli/cluster"
	"github.com/drover-dev/drover/internal/cli/etcd"
	"github.com/drover-dev/drover/internal/cli/gitops"
	"github.com/drover-dev/drover/internal/cli/kubeconfig"
	"github.com/drover-dev/drover/internal/cli/kubectl"
	"github.com/drover-dev/drover/internal/cli/machine"
	"github.com/drover-dev/drover/internal/cli/manager"
	"github.com/drover-dev/drover/internal/cli/metal"
	"github.com/drover-dev/drover/internal/cli/packages"
	"github.com/drover-dev/drover/internal/cli/plane"
	"github.com/drover-dev/drover/internal/cli/registry"
	"github.com/drover-dev/drover/internal/cli/release"
	"github.com/drover-dev/drover/internal/cli/server"
	"github.com/drover-dev/drover/internal/cli/support"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/cli/user"
	"github.com/drover-dev/drover/internal/cli/verb"
	"github.com/drover-dev/drover/internal/cli/version"
	"github.com/drover-dev/drover/internal/cli/web"
)

const long = `Drover runs fleets of Kubernetes clusters on your own machines.

A management cluster creates workload clusters. Creating one requires only a
namespaced role, and never exposes the credentials of machines:

  drover generate clusterconfig mgmt -p docker > mgmt.yaml
  drover create cluster -f mgmt.yaml                   # a management cluster
  drover create cluster -f one.yaml -k mgmt/mgmt-eks-a-cluster.kubeconfig
  drover why cluster one -k mgmt/mgmt-eks-a-cluster.kubeconfig

Or run an embedded management plane on this machine, and use it with kubectl or
clusterctl and your existing Cluster API manifests:

  drover up                                 # start the embedded plane
  export KUBECONFIG=~/.drover/kubeconfig
  drover kubectl apply -f cluster.yaml
  drover status                             # show components and clusters
  drover kubeconfig NAME                    # print a cluster's kubeconfig`

const exitCodes = `Drover exits with one of these codes:

  0  success
  1  failure; the message names the cause and what to try
  2  usage error; nothing was changed
  3  the embedded plane is not running ("status" and "registry status"), or metal
     is not running ("metal status")`

// Main runs the program and returns its exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Client libraries report lost connections, which commands retry, in lines of their own. The
	// manager gives them a logger.
	klog.SetLogger(logr.Discard())
	io := ui.System()
	root := NewCommand(io)
	root.SetArgs(cluster.Args(os.Args))
	// In the image of Drover the same program is where provider-components.yaml looks for the
	// manager.
	if filepath.Base(os.Args[0]) == "manager" {
		root.SetArgs(append([]string{"manager"}, os.Args[1:]...))
	}
	return ui.Report(io.Err, root.ExecuteContext(ctx))
}

// NewCommand builds the whole command tree.
func NewCommand(io *ui.IO) *cobra.Command {
	root := &cobra.Command{
		Use:           "drover",
		Short:         "Fleets of Kubernetes clusters on your own machines",
		Long:          long,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(io.In)
	root.SetOut(io.Out)
	root.SetErr(io.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return ui.Usage(err) })
	root.AddGroup(
		&cobra.Group{ID: "clusters", Title: "Clusters and packages:"},
		&cobra.Group{ID: "plane", Title: "Embedded plane:"},
		&cobra.Group{ID: "machines", Title: "Machines:"},
		&cobra.Group{ID: "packages", Title: "Package bundles:"},
		&cobra.Group{ID: "use", Title: "Other commands:"},
	)
	cluster.AddCommands(root, "clusters", io)
	plane.AddCommands(root, io)
	addTo(root, "plane", registry.NewCommand(io))
	addTo(root, "machines", metal.NewCommand(io), machine.NewCommand(io), server.NewCommand(io))
	addTo(root, "clusters", etcd.NewCommand(io), gitops.NewCommand(io))
	packages.AddCommands(root, "clusters", io)
	user.AddCommands(root, "clusters", io)
	bundle.AddCommands(root, "packages", io)
	addTo(root, "use", addon.NewCommand(io), audit.NewCommand(io), kubeconfig.NewCommand(io), kubectl.NewCommand(), manager.NewCommand(), release.NewCommand(io), support.NewCommand(io), version.NewCommand(io))
	addTo(root, "clusters", web.NewCommand(io))
	verb.Of(root, "clusters", "generate").AddCommand(support.NewGenerateCommand(io))
	root.AddCommand(&cobra.Command{Use: "exit-codes", Short: "Explain the exit codes", Long: exitCodes})
	markUsageErrors(root)
	return root
}

func addTo(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		root.AddCommand(c)
	}
}

// markUsageErrors gives invalid arguments, which cobra reports as plain errors, the exit code of
// usage errors, on every command.
func markUsageErrors(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return ui.Usage(errors.New(strings.TrimSpace(err.Error()) + ": see `" + c.CommandPath() + " --help`"))
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		markUsageErrors(sub)
	}
}
