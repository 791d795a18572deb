package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/seal"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	operate "github.com/drover-dev/drover/internal/operate/etcd"
)

type restoreOptions struct {
	*options
	keys      seal.Flags
	from      string
	snapshot  string
	without   []string
	metalHome string
	yes       bool
	timeout   time.Duration
}

func newRestore(io *ui.IO, shared *options) *cobra.Command {
	o := &restoreOptions{options: shared}
	cmd := &cobra.Command{
		Use:   "restore NAME --from LOCATION",
		Short: "Restore a cluster's etcd from a snapshot",
		Long: `Replace the data of a cluster's etcd by a snapshot. Use it if etcd has lost its quorum
or its data. All changes since the snapshot are lost: objects that were created are
gone, deleted ones are back.

The API server doesn't respond then, so the command reaches control plane and etcd
machines through the metal service on this host, which must run local machines.
Machines elsewhere are not supported. The snapshot and all machines are checked before
anything changes. Then reconciliation of the cluster is paused, the control plane is
stopped, every member is restored and started, kubelets reconnect, and reconciliation
is resumed. The previous data stays on each machine, in before-restore-TIME beside the
new data, until the next restore. If interrupted, run the command again.

A machine that doesn't respond is an error. If it is lost for good, name it in
--without, and delete its Machine afterwards.

LOCATION is ` + locations,
		Example: `  drover etcd restore dev --from /backup
  drover etcd restore dev --from /backup --snapshot 20260102T150405Z --yes
  drover etcd restore dev --from /backup --without dev-control-plane-x7k2p`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), io, args[0]) },
	}
	cmd.Flags().StringVar(&o.from, "from", "", "`location` of the snapshots: a directory, oci://REGISTRY/REPOSITORY or s3://BUCKET/PREFIX")
	_ = cmd.MarkFlagRequired("from")
	cmd.Flags().StringVar(&o.snapshot, "snapshot", "", "`name` of the snapshot, from \"drover etcd snapshots\" (default: the newest)")
	cmd.Flags().StringSliceVar(&o.without, "without", nil, "control plane or etcd `machine` that is lost; repeatable")
	cmd.Flags().StringVar(&o.metalHome, "metal-home", "", "`directory` with the state of the metal service (default $DROVER_METAL_HOME, or ~/.drover-metal)")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "skip the confirmation")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 15*time.Minute, "how long the restore may take")
	o.keys.AddDecryption(cmd)
	return cmd
}

func (o *restoreOptions) run(ctx context.Context, io *ui.IO, name string) error {
	plane, cluster, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	store, err := openStorage(o.from, cluster.ObjectKey)
	if err != nil {
		return err
	}
	entry, err := storage.Find(ctx, store, o.snapshot)
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("%s has no snapshot %s of cluster %q\nTry: drover etcd snapshots %s --from %s", o.from, o.snapshot, cluster.ObjectKey, name, o.from)
	}
	if err != nil {
		return err
	}
	host, err := o.host()
	if err != nil {
		return err
	}
	identities, err := o.keys.Identities(io)
	if err != nil {
		return err
	}
	if err := o.confirm(io, name, entry); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	restore := &operate.Restore{
		Cluster: cluster, Objects: plane.Client, Storage: store, Snapshot: entry.Name, Identities: identities, Host: host, Skip: o.without,
		Progress: func(what string) { fmt.Fprintln(io.Err, what) },
	}
	m, err := restore.Run(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(io.Err, "Restored etcd of cluster %s from the snapshot of %s.\n", cluster.ObjectKey, m.Created.Format(time.RFC3339))
	return nil
}

// host returns the metal service, which must run.
func (o *restoreOptions) host() (operate.Host, error) {
	dir, err := filepath.Abs(cmp.Or(o.metalHome, metal.DefaultHome()))
	if err != nil {
		return nil, err
	}
	host, err := admin.Open(metal.Home{Dir: dir})
	if err != nil {
		return nil, fmt.Errorf("restoring etcd needs the metal service of the cluster's machines on this host: %w", err)
	}
	return host, nil
}

func (o *restoreOptions) confirm(io *ui.IO, name string, entry storage.Entry) error {
	if o.yes {
		return nil
	}
	if !io.CanAsk {
		return ui.Usagef("replacing all objects of cluster %s by snapshot %s requires confirmation: use --yes", name, entry.Name)
	}
	sure, err := io.Confirm(fmt.Sprintf("This stops the control plane of cluster %s and replaces all of its objects by those of snapshot %s.", name, entry.Name))
	if err != nil {
		return err
	}
	if !sure {
		return errors.New("canceled, nothing was changed")
	}
	return nil
}
