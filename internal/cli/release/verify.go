// Package release verifies downloaded files of a Drover release.
package release

import (
	stdio "io"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/release"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// NewCommand builds `drover verify`.
func NewCommand(io *ui.IO) *cobra.Command {
	var output ui.Output
	var keys []string
	cmd := &cobra.Command{
		Use:   "verify FILE... --key KEY",
		Short: "Verify files of a Drover release",
		Long: `Verify that files of a Drover release are unchanged and come from the owner of KEY.

The directory of FILE must contain SHA256SUMS, SHA256SUMS.sig and provenance.intoto.json of
the same release. The command checks the signature of the checksums, the checksum of each
FILE, and the signed provenance, which names the commit it was built from.

KEY is a file with one or more public keys in PEM (ECDSA P-256). cosign verifies the same
signature:

  cosign verify-blob --key release.pub --signature SHA256SUMS.sig SHA256SUMS`,
		Example: `  drover verify drover_v0.1.0_linux_amd64.tar.gz --key release.pub
  drover verify *.tar.gz --key old.pub --key new.pub -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			verified, err := verifyAll(files, keys)
			if err != nil {
				return err
			}
			return output.Print(io.Out, verified, func(w stdio.Writer) error { return printTable(w, verified) })
		},
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "`file` with a trusted public key; may be repeated")
	_ = cmd.MarkFlagFilename("key", "pub", "pem")
	output.AddFlag(cmd)
	return cmd
}

func verifyAll(files, keyFiles []string) ([]release.Verified, error) {
	if len(keyFiles) == 0 {
		return nil, ui.Usagef("--key is required")
	}
	keys, err := bundle.ReadKeys(keyFiles)
	if err != nil {
		return nil, err
	}
	var verified []release.Verified
	for _, file := range files {
		v, err := release.Verify(file, keys)
		if err != nil {
			return nil, err
		}
		verified = append(verified, v)
	}
	return verified, nil
}

func printTable(w stdio.Writer, verified []release.Verified) error {
	rows := make([][]string, 0, len(verified))
	for _, v := range verified {
		rows = append(rows, []string{v.Name, v.Source.Version, v.Source.Commit, v.Key})
	}
	return ui.Table(w, []string{"VERIFIED", "VERSION", "COMMIT", "SIGNED WITH"}, rows)
}
