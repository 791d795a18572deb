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

// signedByUsage describes --key of the commands that verify a bundle only if a key is given.
const signedByUsage = "`file` with a public key; the bundle must be signed by one of these keys; may be repeated"

type pullOptions struct {
	registries

	output     ui.Output
	kubernetes string
	file       string
	keys       []string
}

func newPull(io *ui.IO) *cobra.Command {
	o := &pullOptions{}
	cmd := &cobra.Command{
		Use:   "pull [BUNDLE]",
		Short: "Pull a bundle from a registry",
		Long: `Pull a bundle from a registry by name, by oci:// reference, or the newest one for a
Kubernetes version, and print it or write it to a file.

With --key, the command fails unless one of the keys signed the bundle. It doesn't pull
charts and images; use "drover bundle copy" for those.`,
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
	cmd.Flags().StringVar(&o.kubernetes, "kube-version", "", "pull the newest bundle for this Kubernetes minor `version`, such as 1.36")
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "`file` to write the bundle to (default: standard output)")
	addKeys(cmd, &o.keys, signedByUsage)
	o.add(cmd)
	o.addRegistry(cmd)
	o.output.AddFlag(cmd)
	return cmd
}

// wanted returns the tag or reference of a bundle, from exactly one of an argument and
// --kube-version.
func wanted(args []string, kubernetes string) (string, error) {
	switch {
	case len(args) == 1 && kubernetes != "":
		return "", ui.Usagef("pass either a bundle or --kube-version, not both")
	case len(args) == 1:
		return args[0], nil
	case kubernetes == "":
		return "", ui.Usagef("pass a bundle, or --kube-version for the newest one")
	}
	tag, err := bundle.LatestTag(kubernetes)
	if err != nil {
		return "", ui.Usage(err)
	}
	return tag, nil
}

func (o *pullOptions) run(ctx context.Context, io *ui.IO, name string) error {
	keys, err := bundle.ReadKeys(o.keys)
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

// checkSignature verifies the bundle if the user passed keys.
func checkSignature(b *packagesv1.PackageBundle, keys bundle.Keys) error {
	if len(keys) == 0 {
		return nil
	}
	if err := bundle.Verify(b, keys); err != nil {
		return fmt.Errorf("bundle %s: %w", b.Name, err)
	}
	return nil
}
