package bundle

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
)

// newCopyPackages is what others call a copy from registry to registry, with their flags.
func newCopyPackages(io *ui.IO) *cobra.Command {
	o := &copyOptions{}
	var charts string
	cmd := &cobra.Command{
		Use:     "packages DESTINATION",
		Aliases: []string{"package"},
		Short:   "Copy the newest bundle for a version of Kubernetes, with its charts and images",
		Long: `Copy the newest bundle for a version of Kubernetes to another registry, with the charts
and images that it names. DESTINATION is HOST[:PORT][/PATH], or "plane" for the plane's
own registry.

What is missing at the source is said before anything is written, everything is compared
with its digest, and what the destination has is not sent again. "drover bundle copy" does
the same, knows archives as well, and tells more about it.`,
		Example: `  drover copy packages mirror.example.com/packages --kube-version 1.36 --src-image-registry images.example.com
  drover copy packages plane --kube-version 1.36 --src-chart-registry registry.example.com/packages \
    --src-image-registry registry.example.com/packages`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.images == "" {
				return ui.Usagef("name the registry of the images with --src-image-registry")
			}
			if o.kubernetes == "" {
				return ui.Usagef("name the version of Kubernetes with --kube-version")
			}
			return o.run(cmd.Context(), io, withScheme(charts), withScheme(args[0]))
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{ownPlane}, cobra.ShellCompDirectiveNoFileComp),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubernetes, "kube-version", "", "minor `version` of Kubernetes, such as 1.36")
	flags.StringVar(&charts, "src-chart-registry", ownPlane, "`registry` that has the bundle and the charts, as HOST[:PORT][/PATH]")
	flags.StringVar(&o.images, "src-image-registry", "", "`registry` that has the images, as HOST[:PORT][/PATH]")
	flags.BoolVar(&o.toPlainHTTP, "dst-plain-http", false, "also speak to the destination without TLS")
	flags.BoolVar(&o.toInsecure, "dst-insecure", false, "trust every certificate of the destination")
	flags.BoolVar(&o.dryRun, "dry-run", false, "find out what would be sent, and write nothing")
	addKeys(cmd, &o.keys, "`file` with a public key that must have signed the bundle, or another that is named; may be repeated")
	o.add(cmd)
	o.output.AddFlag(cmd)
	return cmd
}

// withScheme tells a registry from a file.
func withScheme(registry string) string {
	if registry == ownPlane || strings.HasPrefix(registry, scheme) {
		return registry
	}
	return scheme + registry
}
