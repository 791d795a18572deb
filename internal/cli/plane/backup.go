package plane

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/seal"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/plane"
)

type backupOptions struct {
	homeFlag
	keys seal.Flags
}

func newBackup(io *ui.IO) *cobra.Command {
	o := &backupOptions{}
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Save the embedded plane to an encrypted file",
		Long: `Save a consistent copy of the running plane to FILE: the content of etcd, the
certificates, and the keys that encrypt Secrets. The file is encrypted with a
passphrase or for age recipients, and holds checksums and versions that "drover
restore" verifies. It doesn't hold the content of the registry: push that again
after a restore.

A running plane also backs itself up on schedule: see "drover up --help".

The passphrase is read from --passphrase-file, $DROVER_PASSPHRASE or the
terminal.`,
		Example: `  drover backup plane.backup
  drover backup plane.backup --passphrase-file secret.txt
  drover backup plane.backup --recipient age1…`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), io, args[0]) },
	}
	o.add(cmd)
	o.keys.AddEncryption(cmd)
	cmd.AddCommand(newSchedule(io))
	return cmd
}

func (o *backupOptions) run(ctx context.Context, io *ui.IO, path string) error {
	home, err := o.home()
	if err != nil {
		return err
	}
	if !home.Running() {
		return plane.ErrNotRunning
	}
	recipients, err := o.keys.Recipients(io)
	if err != nil {
		return err
	}
	m, err := plane.Backup(ctx, home, path, recipients...)
	if err != nil {
		return err
	}
	fmt.Fprintf(io.Err, "Saved the embedded plane to %s: %d files, %s before compression.\n", path, len(m.Files), size(m))
	return nil
}

func size(m plane.Manifest) string {
	var n int64
	for _, f := range m.Files {
		n += f.Size
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
