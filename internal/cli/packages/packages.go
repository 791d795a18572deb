// Package packages implements the commands for curated packages: generate, list, install, create,
// apply, get, describe, delete and upgrade. It parses flags and prints results; package
// operate/inspect does the work.
package packages

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/cli/verb"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// AddCommands adds the commands below their verbs.
func AddCommands(root *cobra.Command, group string, io *ui.IO) {
	for name, commands := range map[string][]*cobra.Command{
		"generate": {newGenerate(io)},
		"list":     {newList(io)},
		"install":  {newInstall(io)},
		"create":   {newCreate(io)},
		"apply":    {newApply(io)},
		"get":      {newGet(io), newGetBundles(io), newGetControllers(io)},
		"describe": {newDescribe(io)},
		"delete":   {newDelete(io)},
		"upgrade":  {newUpgrade(io)},
	} {
		verb.Of(root, group, name).AddCommand(commands...)
	}
}

// options are the flags that most commands share.
type options struct {
	plane   management.Flags
	cluster string
}

// add adds the flags for the management plane.
func (o *options) add(cmd *cobra.Command) {
	o.plane.Add(cmd.Flags())
	_ = cmd.MarkFlagFilename("kubeconfig")
}

// addCluster adds the flags for the management plane and --cluster, which is required.
func (o *options) addCluster(cmd *cobra.Command) {
	o.add(cmd)
	cmd.Flags().StringVar(&o.cluster, "cluster", "", "`name` of the cluster to work on")
	_ = cmd.RegisterFlagCompletionFunc("cluster", o.completeCluster)
}

func (o *options) connect() (*inspect.Plane, error) {
	config, err := o.plane.Config()
	if err != nil {
		return nil, err
	}
	return inspect.Connect(config)
}

// connectTo connects and reads the PackageBundleController of --cluster.
func (o *options) connectTo(ctx context.Context) (*inspect.Plane, *packagesv1.PackageBundleController, error) {
	if o.cluster == "" {
		return nil, nil, ui.Usagef("--cluster is required; `drover get packagebundlecontrollers` lists the clusters that accept packages")
	}
	plane, err := o.connect()
	if err != nil {
		return nil, nil, err
	}
	controller, err := plane.BundleController(ctx, o.cluster)
	return plane, controller, err
}

// completeCluster completes the names of clusters that accept packages.
func (o *options) completeCluster(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), ui.CompletionTimeout)
	defer cancel()
	plane, err := o.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := plane.BundleControllers(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	out := make([]cobra.Completion, 0, len(all))
	for _, c := range all {
		out = append(out, cobra.CompletionWithDesc(c.Name, fmt.Sprintf("uses %s", c.Spec.ActiveBundle)))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completePackage completes the names of the cluster's packages.
func (o *options) completePackage(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), ui.CompletionTimeout)
	defer cancel()
	plane, err := o.connect()
	if err != nil || o.cluster == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := plane.Packages(ctx, o.cluster)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	out := make([]cobra.Completion, 0, len(all))
	for _, p := range all {
		out = append(out, cobra.CompletionWithDesc(p.Name, p.Spec.PackageName))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
