package plane

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
)

var rotateStages = map[string]string{
	"new key": "Adding a new key",
	"secrets": "Encrypting every Secret with it",
	"old key": "Removing the old key",
}

func newEncryption(io *ui.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "encryption",
		Short: "Manage the key that encrypts the embedded plane's Secrets at rest",
		Long: `The embedded plane encrypts Secrets before they reach its etcd. The key is a file in the home that only
its owner can read.

A management cluster that "drover create cluster" makes stores Secrets as its API server is configured.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRotate(io))
	return cmd
}

func newRotate(io *ui.IO) *cobra.Command {
	var home homeFlag
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the key and encrypt every Secret with the new one",
		Long: `Create a new key, encrypt every Secret with it, and delete the old key. The API
server restarts twice, for a few seconds each; clients that retry don't notice.
If the rotation is interrupted, run the command again to complete it.`,
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
	fmt.Fprintf(io.Err, "Encrypted %d Secrets with the new key.\n", n)
	return nil
}
