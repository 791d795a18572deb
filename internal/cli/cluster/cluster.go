// Package cluster has the commands about clusters: create, upgrade, delete, renew, promote, adopt
// and recover with their phases, resume, get, describe, why, events, generate, upgrade plan and
// validate. They parse flags and print results; the work is done by packages lifecycle and inspect.
// Start with AddCommands.
package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/cli/verb"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// AddCommands adds the commands below their verbs.
func AddCommands(root *cobra.Command, group string, io *ui.IO) {
	for word, made := range map[string][]*cobra.Command{
		"create":   {newCreate(io)},
		"upgrade":  {newUpgrade(io), newPlan(io)},
		"delete":   {newDelete(io)},
		"get":      {newGetClusters(io), newGetMachines(io), newGetQuotas(io)},
		"describe": {newDescribe(io)},
		"why":      {newWhy(io)},
		"events":   {newEvents(io)},
		"generate": {newGenerate(io)},
		"renew":    {newRenew(io)},
		"promote":  {newPromote(io)},
		"adopt":    {newAdopt(io)},
		"resume":   {newResume(io)},
	} {
		verb.Of(root, group, word).AddCommand(made...)
	}
	validate := newValidate(io)
	recovering := newRecover(io)
	validate.GroupID, recovering.GroupID = group, group
	root.AddCommand(validate, recovering, newExp(io))
}

// view holds the flags of commands that only read.
type view struct {
	plane     management.Flags
	namespace string
	output    ui.Output
}

func (l *view) add(cmd *cobra.Command) {
	l.plane.Add(cmd.Flags())
	cmd.Flags().StringVarP(&l.namespace, "namespace", "n", "", "`namespace` of the cluster (default: search all)")
	_ = cmd.MarkFlagFilename("kubeconfig")
	l.output.AddFlag(cmd)
}

func (l *view) connect() (*inspect.Plane, error) {
	config, err := l.plane.Config()
	if err != nil {
		return nil, err
	}
	plane, err := inspect.Connect(config)
	if err != nil {
		return nil, err
	}
	plane.Own = l.plane.Namespace()
	return plane, nil
}

// complete completes the names of clusters.
func (l *view) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names(cmd.Context(), l.connect, l.namespace)
}

// names returns the clusters of a management plane with descriptions.
func names(ctx context.Context, connect func() (*inspect.Plane, error), namespace string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, ui.CompletionTimeout)
	defer cancel()
	plane, err := connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := plane.Clusters(ctx, namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	out := make([]cobra.Completion, 0, len(all))
	for i := range all {
		out = append(out, cobra.CompletionWithDesc(all[i].Name, "Kubernetes "+all[i].Spec.KubernetesVersion+" in "+all[i].Namespace))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
