// Package bundle implements the commands for publishers of packages: build, keygen, sign, verify,
// push, pull, diff and copy. It parses flags and prints results; packages bundle, pack and transfer
// do the work.
package bundle

import (
	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/cli/verb"
)

const long = `Build, sign, publish and copy bundles. A bundle is a signed list of charts for one
Kubernetes minor version, which clusters can install as packages.

  drover bundle keygen release.key              # once
  drover bundle build bundle.yaml --charts out  # package the charts and list them in a bundle
  drover bundle sign v1-36-1.yaml --key release.key
  drover bundle push v1-36-1.yaml --charts out  # to the plane's registry
  drover bundle copy plane site.tar --kube-version 1.36
  drover bundle copy site.tar oci://registry.example.com/packages

Commands accept a bundle in these forms:

  FILE                           a file, or - for standard input
  v1-36-1 or v1-36-latest        a tag in --registry
  oci://HOST/PATH/REPOSITORY:TAG a tag in any registry

Credentials for registries other than the plane's come from "docker login" or "helm
registry login". For air-gapped sites, see "drover bundle copy --help".`

// NewCommand is "drover bundle".
func NewCommand(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bundle",
		Aliases: []string{"bundles"},
		Short:   "Build, sign, publish and copy bundles of packages",
		Long:    long,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBuild(io), newKeygen(io), newSign(io), newVerify(io), newPush(io), newPull(io), newDiff(io), newCopy(io))
	return cmd
}

// AddCommands adds "drover bundle" to a group, and "drover copy packages", its compatible spelling.
func AddCommands(root *cobra.Command, group string, io *ui.IO) {
	cmd := NewCommand(io)
	cmd.GroupID = group
	root.AddCommand(cmd)
	verb.Of(root, group, "copy").AddCommand(newCopyPackages(io))
}

// completeFiles completes up to limit arguments with files that have one of the extensions.
func completeFiles(limit int, extensions ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return extensions, cobra.ShellCompDirectiveFilterFileExt
	}
}
