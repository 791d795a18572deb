package bundle

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
)

// newCopyPackages is "drover copy packages": a copy between registries with the flags that existing
// scripts use.
func newCopyPackages(io *ui.IO) *cobra.Command {
	o := &copyOptions{}
	var charts string
	cmd := &cobra.Command{
		Use:     "packages DESTINATION",
		Aliases: []string{"package"},
		Short:   "Copy the newest bundle for a Kubernetes version",
		Long: `Copy the newest bundle for a Kubernetes version, with its charts and images, to another
registry. DESTINATION is HOST[:PORT][/PATH], or "plane" for the plane's registry.

The command reports missing content before it writes anything, verifies digests, and
doesn't send existing content again. "drover bundle copy" does the same and also supports
archives.`,
		Example: `  drover copy packages mirror.example.com/packages --kube-version 1.36 --src-image-registry images.example.com
  drover copy packages plane --kube-version 1.36 --src-chart-registry registry.example.com/packages \
    --src-image-registry registry.example.com/packages`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.images == "" {
				return ui.Usagef("--src-image-registry is required")
			}
			if o.kubernetes == "" {
				return ui.Usagef("--kube-version is required")
			}
			return o.run(cmd.Context(), io, withScheme(charts), withScheme(args[0]))
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{ownPlane}, cobra.ShellCompDirectiveNoFileComp),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubernetes, "kube-version", "", "Kubernetes minor `version`, such as 1.36")
	flags.StringVar(&charts, "src-chart-registry", ownPlane, "`registry` of the bundle and its charts, as HOST[:PORT][/PATH]")
	flags.StringVar(&o.images, "src-image-registry", "", "`registry` of the images, as HOST[:PORT][/PATH]")
	flags.BoolVar(&o.toPlainHTTP, "dst-plain-http", false, "allow a destination without TLS")
	flags.BoolVar(&o.toInsecure, "dst-insecure", false, "do not verify the certificate of the destination")
	flags.BoolVar(&o.dryRun, "dry-run", false, "report what would be sent without writing anything")
	addKeys(cmd, &o.keys, signedByUsage)
	o.add(cmd)
	o.output.AddFlag(cmd)
	return cmd
}

// withScheme marks an address as a registry rather than a file.
func withScheme(registry string) string {
	if registry == ownPlane || strings.HasPrefix(registry, scheme) {
		return registry
	}
	return scheme + registry
}
