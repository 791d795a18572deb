package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	stdio "io"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/cli/seal"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/workload/etcd/backup"
)

// locations is the help about where snapshots are.
const locations = `a directory, oci:// with a registry and a repository, or s3:// with a bucket and a
prefix. Snapshots are in LOCATION/NAMESPACE/NAME, named by their time in UTC. The
password of the embedded plane's registry is found automatically; for others, run
"docker login" or write ~/.docker/config.json. For S3, set $AWS_ACCESS_KEY_ID,
$AWS_SECRET_ACCESS_KEY and, for another endpoint than Amazon's, $AWS_ENDPOINT_URL_S3.
$AWS_REGION and $AWS_CA_BUNDLE are optional.`

type snapshotOptions struct {
	*options
	output ui.Output
	keys   seal.Flags
	to     string
	keep   int
}

func newSnapshot(io *ui.IO, shared *options) *cobra.Command {
	o := &snapshotOptions{options: shared}
	cmd := &cobra.Command{
		Use:   "snapshot NAME --to LOCATION",
		Short: "Save a cluster's etcd to an encrypted snapshot",
		Long: `Save a consistent copy of a cluster's etcd. It contains all objects, Secrets included.
The snapshot is encrypted with a passphrase or for age recipients, and signed with the
key of the cluster's CA, so that it can be restored only into this cluster. Nothing
unencrypted is written to a disk.

LOCATION is ` + locations + `

The passphrase is read from --passphrase-file, $DROVER_PASSPHRASE or the terminal.`,
		Example: `  drover etcd snapshot dev --to /backup
  drover etcd snapshot dev --to /backup --keep 7 --recipient age1…
  drover etcd snapshot dev --to oci://registry.example.com/snapshots
  AWS_ENDPOINT_URL_S3=https://s3.example.com drover etcd snapshot dev --to s3://snapshots`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), io, args[0]) },
	}
	cmd.Flags().StringVar(&o.to, "to", "", "`location` to save to: a directory, oci://REGISTRY/REPOSITORY or s3://BUCKET/PREFIX")
	cmd.Flags().IntVar(&o.keep, "keep", 0, "`number` of snapshots to keep, older ones are deleted (default: all)")
	_ = cmd.MarkFlagRequired("to")
	o.keys.AddEncryption(cmd)
	o.output.AddFlag(cmd)
	return cmd
}

func (o *snapshotOptions) run(ctx context.Context, io *ui.IO, name string) error {
	if o.keep < 0 {
		return ui.Usagef("--keep %d is negative", o.keep)
	}
	_, cluster, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	store, err := openStorage(o.to, cluster.ObjectKey)
	if err != nil {
		return err
	}
	recipients, err := o.keys.Recipients(io)
	if err != nil {
		return err
	}
	saved, err := backup.Save(ctx, backup.Options{Cluster: cluster, Storage: store, Recipients: recipients, Now: time.Now()})
	if err != nil {
		return err
	}
	deleted, err := storage.Prune(ctx, store, o.keep)
	return errors.Join(err, o.output.Print(io.Out, saved, func(w stdio.Writer) error {
		_, err := fmt.Fprintf(w, "Saved %s: %s of etcd %s at revision %d, from member %s.\n",
			saved.Location, mebibytes(saved.Manifest.Size), cmp.Or(saved.Manifest.Etcd, "of an unknown version"), saved.Manifest.Revision, saved.Member)
		for _, d := range deleted {
			fmt.Fprintf(w, "Deleted %s.\n", d.Location)
		}
		return err
	}))
}

func newSnapshots(io *ui.IO, o *options) *cobra.Command {
	var output ui.Output
	var from string
	cmd := &cobra.Command{
		Use:   "snapshots NAME --from LOCATION",
		Short: "List the snapshots of a cluster's etcd",
		Long: `List the snapshots of a cluster, the newest first. LOCATION is ` + locations + `

The cluster doesn't need to respond.`,
		Example:           `  drover etcd snapshots dev --from /backup`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, cluster, err := o.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			store, err := openStorage(from, cluster.ObjectKey)
			if err != nil {
				return err
			}
			all, err := store.List(cmd.Context())
			if err != nil {
				return err
			}
			all = storage.Newest(all)
			return output.Print(io.Out, all, func(w stdio.Writer) error { return snapshotTable(w, all) })
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "`location` of the snapshots")
	_ = cmd.MarkFlagRequired("from")
	output.AddFlag(cmd)
	return cmd
}

func snapshotTable(w stdio.Writer, all []storage.Entry) error {
	rows := make([][]string, 0, len(all))
	for _, e := range all {
		size := "-"
		if e.Size > 0 {
			size = mebibytes(e.Size)
		}
		rows = append(rows, []string{e.Name, size, e.Location})
	}
	return ui.Table(w, []string{"SNAPSHOT", "SIZE", "LOCATION"}, rows)
}
