package plane

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
)

var rotateStages = map[string]string{
	"new key": "New key in use, API server restarted",
	"secrets": "Every Secret written anew",
	"old key": "Old key removed, API server restarted",
}

func newEncryption(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "encryption",
		Short: "Manage the key that encrypts Secrets at rest",
		Long:  `Secrets are encrypted before they reach etcd. The key is in the home, readable by its owner only.`,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRotate(io))
	return cmd
}

func newRotate(io *ui.IO) *cobra.Command {
	var home homeFlag
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the key and encrypt every Secret anew",
		Long: `Make a new key, write every Secret anew with it, then forget the old key. The API
server restarts twice, for a few seconds each; clients that retry do not notice.
A rotation that was interrupted is finished by running it again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return rotate(cmd.Context(), io, home) },
	}
	home.add(cmd)
	return cmd
}

func rotate(ctx context.Context, io *ui.IO, flag homeFlag) error {
	home, err := flag.home()
	if err != nil {
		return err
	}
	tell, _ := progress(io, rotateStages)
	n, err := plane.RotateEncryption(ctx, home, tell)
	if err != nil {
		return err
	}
	fmt.Fprintf(io.Err, "Encrypted %d Secrets with a new key.\n", n)
	return nil
}
