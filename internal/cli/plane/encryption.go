package plane

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/cluster"
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
		Short: "Manage the keys that encrypt Secrets at rest",
		Long: `API servers encrypt Secrets before they reach etcd. The key of the embedded plane is a file in its home
that only its owner can read. The key of a cluster is in a Secret on its management
plane: management clusters have one, workload clusters if their spec asks for it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRotate(io))
	return cmd
}

func newRotate(io *ui.IO) *cobra.Command {
	var (
		home     homeFlag
		rotation *cluster.Rotation
	)
	cmd := &cobra.Command{
		Use:   "rotate [NAME | -f FILE]",
		Short: "Replace the key and encrypt every Secret with the new one",
		Long: `Create a new key, encrypt every Secret with it, and delete the old key: the key of
the embedded plane, or that of a cluster if you name one. If the rotation is
interrupted, run the command again to complete it.

The API server of the embedded plane restarts twice, for a few seconds each; clients
that retry don't notice. The control plane machines of a cluster are replaced twice,
one after the other: first all of them learn the new key, then all of them use it.`,
		Example: `  # Rotate the key of the embedded plane
  drover encryption rotate

  # Rotate the key of a management cluster
  drover encryption rotate -f mgmt.yaml

  # Rotate the key of a workload cluster
  drover encryption rotate one --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			named, err := rotation.Requested(args)
			switch {
			case err != nil:
				return err
			case named:
				return rotation.Run(cmd.Context(), args)
			}
			return rotate(cmd.Context(), io, home)
		},
	}
	home.add(cmd)
	rotation = cluster.NewRotation(io, cmd)
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
