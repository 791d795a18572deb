package plane

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/seal"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
)

type restoreOptions struct {
	homeFlag
	keys     seal.Flags
	kubeDir  string
	signedBy string
}

func newRestore(io *ui.IO) *cobra.Command {
	o := &restoreOptions{}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore the embedded plane from a backup",
		Long: `Restore a backup into a new home and leave the plane stopped. The whole file is
verified first: with a wrong passphrase, a damaged file or a backup of a newer
Drover, nothing is written. The home must be empty.

Anyone can encrypt a backup for an age recipient. With --identity, name a
kubeconfig of the plane or its CA certificate in --signed-by, so that only a
backup of that plane is restored.`,
		Example: `  drover restore plane.backup --home ~/.drover-restored
  drover up --home ~/.drover-restored
  drover restore plane.backup --home ~/.drover-restored --identity key.txt --signed-by plane.kubeconfig`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), io, args[0]) },
	}
	o.add(cmd)
	o.keys.AddDecryption(cmd)
	cmd.Flags().StringVar(&o.signedBy, "signed-by", "", "`file` with a kubeconfig or the CA certificate of the plane that the backup must be from; required with --identity")
	cmd.Flags().StringVar(&o.kubeDir, "kube-dir", "", "`directory` with the Kubernetes binary to use ($DROVER_KUBE_DIR)")
	return cmd
}

func (o *restoreOptions) run(ctx context.Context, io *ui.IO, path string) error {
	home, err := o.home()
	if err != nil {
		return err
	}
	if o.keys.HasIdentity() && o.signedBy == "" {
		return ui.Usagef("--identity requires --signed-by: anyone can encrypt a backup for an age recipient")
	}
	signers, err := seal.ReadSigners(o.signedBy)
	if err != nil {
		return err
	}
	identities, err := o.keys.Identities(io)
	if err != nil {
		return err
	}
	m, err := plane.Restore(ctx, plane.RestoreOptions{Home: home, Path: path, Identities: identities, Signers: signers, KubeDir: o.kubeDir})
	if err != nil {
		return err
	}
	fmt.Fprintf(io.Err, "Restored the backup of %s (Drover %s, Kubernetes %s) into %s.\nStart the plane with:\n\n  drover up --home %s\n",
		m.Created.Format(time.RFC3339), m.Drover, m.Kubernetes, home.Dir, home.Dir)
	return nil
}
