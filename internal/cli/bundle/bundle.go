// Package bundle holds the commands for those who publish packages: build, keygen, sign, verify, push, pull, diff and copy. They parse and
// print; packages bundle, pack and transfer do the work.
package bundle

import (
	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/cli/verb"
)

const long = `Make, sign, publish and move bundles. A bundle is a signed list of charts for one
minor version of Kubernetes: what clusters may install as packages.

  drover bundle keygen release.key              # once
  drover bundle build bundle.yaml --charts out  # charts and a bundle out of a list
  drover bundle sign v1-36-1.yaml --key release.key
  drover bundle push v1-36-1.yaml --charts out  # to the plane's own registry
  drover bundle copy plane site.tar --kube-version 1.36
  drover bundle copy site.tar oci://registry.example.com/packages

A bundle can be named in these ways:

  FILE                           a file, or - for the standard input
  v1-36-1 or v1-36-latest        a tag in --registry
  oci://HOST/PATH/REPOSITORY:TAG anywhere else

Registries other than the plane's own are opened with what "docker login" or "helm
registry login" wrote down. See "drover bundle copy --help" for air gaps.`

// NewCommand is "drover bundle".
func NewCommand(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bundle",
		Aliases: []string{"bundles"},
		Short:   "Make, sign, publish and move bundles of packages",
		Long:    long,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBuild(io), newKeygen(io), newSign(io), newVerify(io), newPush(io), newPull(io), newDiff(io), newCopy(io))
	return cmd
}

// AddCommands puts "drover bundle" into a group, and what those who know packages look for below its verb.
func AddCommands(root *cobra.Command, group string, io *ui.IO) {
	cmd := NewCommand(io)
	cmd.GroupID = group
	root.AddCommand(cmd)
	verb.Of(root, group, "copy").AddCommand(newCopyPackages(io))
}

// completeFiles offers files with the endings to a shell, for as many arguments as there may be.
func completeFiles(most int, endings ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}
