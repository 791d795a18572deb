// Package packages holds the commands about curated packages: generate, list, install, create, apply, get, describe, delete and upgrade.
// They parse and print; package view does the work.
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

// AddCommands puts the commands below their verbs.
func AddCommands(root *cobra.Command, group string, io *ui.IO) {
	for word, made := range map[string][]*cobra.Command{
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
		verb.Of(root, group, word).AddCommand(made...)
	}
}

// options are those of most commands.
type options struct {
	plane   management.Flags
	cluster string
}

// add puts the flags on a command.
func (o *options) add(cmd *cobra.Command) {
	o.plane.Add(cmd.Flags())
	_ = cmd.MarkFlagFilename("kubeconfig")
}

// addCluster puts --cluster on a command as well. It must be given.
func (o *options) addCluster(cmd *cobra.Command) {
	o.add(cmd)
	cmd.Flags().StringVar(&o.cluster, "cluster", "", "`name` of the cluster that the packages are for")
	_ = cmd.RegisterFlagCompletionFunc("cluster", o.completeCluster)
}

func (o *options) connect() (*inspect.Plane, error) {
	config, err := o.plane.Config()
	if err != nil {
		return nil, err
	}
	return inspect.Connect(config)
}

// connectTo is for commands that are nothing without a cluster.
func (o *options) connectTo(ctx context.Context) (*inspect.Plane, *packagesv1.PackageBundleController, error) {
	if o.cluster == "" {
		return nil, nil, ui.Usagef("--cluster is needed: see `drover get packagebundlecontrollers` for the clusters that take packages")
	}
	plane, err := o.connect()
	if err != nil {
		return nil, nil, err
	}
	controller, err := plane.BundleController(ctx, o.cluster)
	return plane, controller, err
}

// completeCluster offers the clusters that take packages.
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

// completePackage offers the packages of the cluster.
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
