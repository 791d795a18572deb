package bundle

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

type pullOptions struct {
	places

	output     ui.Output
	kubernetes string
	file       string
	keys       []string
}

func newPull(io *ui.IO) *cobra.Command {
	o := &pullOptions{}
	cmd := &cobra.Command{
		Use:   "pull [BUNDLE]",
		Short: "Get a bundle from a registry",
		Long: `Get a bundle from a registry, by its name, by an oci:// reference, or the newest for a
version of Kubernetes. It is written to the standard output, or to a file.

With --key it is written only if one of the keys signed it. Charts and images stay where
they are; "drover bundle copy" gets these too.`,
		Example: `  drover bundle pull --kube-version 1.36
  drover bundle pull v1-36-1 --key release.key.pub -f v1-36-1.yaml
  drover bundle pull --kube-version 1.36 --registry registry.example.com/packages -o json | jq '.spec.packages[].name'`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := wanted(args, o.kubernetes)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), io, name)
		},
	}
	cmd.Flags().StringVar(&o.kubernetes, "kube-version", "", "get the newest bundle for this minor `version` of Kubernetes, such as 1.36")
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "`file` to write the bundle to (default: the standard output)")
	addKeys(cmd, &o.keys, "`file` with a public key that must have signed the bundle, or another that is named; may be repeated")
	o.add(cmd)
	o.addRegistry(cmd)
	o.output.AddFlag(cmd)
	return cmd
}

// wanted is the tag or reference of a bundle, one of which must be named.
func wanted(args []string, kubernetes string) (string, error) {
	switch {
	case len(args) == 1 && kubernetes != "":
		return "", ui.Usagef("name a bundle, or --kube-version for the newest, not both")
	case len(args) == 1:
		return args[0], nil
	case kubernetes == "":
		return "", ui.Usagef("name a bundle, or --kube-version for the newest")
	}
	tag, err := bundle.LatestTag(kubernetes)
	if err != nil {
		return "", ui.Usage(err)
	}
	return tag, nil
}

func (o *pullOptions) run(ctx context.Context, io *ui.IO, name string) error {
	keys, err := readKeys(o.keys)
	if err != nil {
		return err
	}
	b, err := o.load(ctx, io, name)
	if err != nil {
		return err
	}
	if err := checkSignature(b, keys); err != nil {
		return err
	}
	text, err := bundle.Format(b)
	if err != nil {
		return err
	}
	switch {
	case o.file != "":
		if err := atomicfile.Write(o.file, text, 0o644); err != nil {
			return fmt.Errorf("writing the bundle: %w", err)
		}
		_, err = fmt.Fprintf(io.Out, "Wrote %s to %s\n", b.Name, o.file)
	case o.output == "json":
		err = o.output.Print(io.Out, b, nil)
	default:
		_, err = io.Out.Write(text)
	}
	return err
}

// checkSignature is for those who named keys.
func checkSignature(b *packagesv1.PackageBundle, keys bundle.Keys) error {
	if len(keys) == 0 {
		return nil
	}
	if err := bundle.Verify(b, keys); err != nil {
		return fmt.Errorf("bundle %s: %w", b.Name, err)
	}
	return nil
}
