// Package gitops has the commands of `drover gitops`. They parse flags and print results; the work
// is done by package operate/gitops. Start with NewCommand.
package gitops

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/operate/gitops"
)

// NewCommand returns the command with its subcommands.
func NewCommand(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gitops",
		Short: "Manage clusters through a Git repository",
		Long: `Manage clusters through a Git repository.

With GitOps, the specs of clusters are files in Git: Flux applies what is committed, and
"drover create cluster", "upgrade cluster" and "delete cluster" commit instead of changing
the management plane. An administrator connects the repository once; creators of clusters
need no credentials for it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCheck(io), newDiff(io), newStatus(io), newEnable(io), newDisable(io), newConfirm(io), newRotateKey(io))
	return cmd
}

// target is a namespace of a management plane.
type target struct {
	plane     management.Flags
	namespace string
}

func (t *target) add(cmd *cobra.Command, usage string) {
	t.plane.Add(cmd.Flags())
	_ = cmd.MarkFlagFilename("kubeconfig")
	if usage != "" {
		cmd.Flags().StringVarP(&t.namespace, "namespace", "n", "", usage)
	}
}

func (t *target) connect() (*gitops.Plane, error) {
	config, err := t.plane.Config()
	if err != nil {
		return nil, err
	}
	p, err := gitops.Connect(config)
	if err != nil {
		return nil, err
	}
	p.Own = t.plane.Namespace()
	return p, nil
}

// installation returns Flux on the management plane, if that is a management cluster.
func (t *target) installation(io *ui.IO) (gitops.Installation, error) {
	config, err := t.plane.Config()
	if err != nil {
		return gitops.Installation{}, err
	}
	home, err := filepath.Abs(metal.DefaultHome())
	if err != nil {
		return gitops.Installation{}, err
	}
	return gitops.Installation{REST: config, Metal: metal.Home{Dir: home}, Progress: func(doing string) { fmt.Fprintln(io.Err, doing) }}, nil
}

// complete completes the names of clusters.
func (t *target) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), ui.CompletionTimeout)
	defer cancel()
	p, err := t.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := p.Clusters(ctx, t.namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []cobra.Completion
	for i := range all {
		if all[i].Spec.GitOpsRef != nil {
			out = append(out, cobra.CompletionWithDesc(all[i].Name, "in "+all[i].Namespace))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// systemFlag adds the flag of the namespace of Flux.
func systemFlag(cmd *cobra.Command, system *string) {
	cmd.Flags().StringVar(system, "flux-namespace", "", "`namespace` of Flux (default: flux-system)")
}
