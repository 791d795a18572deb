package cluster

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/seal"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
	"github.com/drover-dev/drover/internal/operate/recovery"
)

// recoverOptions holds the flags of recover.
type recoverOptions struct {
	change

	keys      seal.Flags
	from      string
	backup    string
	signedBy  string
	deleteOld bool
}

// newRecover returns the command that creates a lost management cluster again.
func newRecover(io *ui.IO) *cobra.Command {
	return (&recoverOptions{change: change{io: io}}).command()
}

func (o *recoverOptions) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recover NAME",
		Short: "Recover a lost management cluster from a backup",
		Long: `Create a management cluster again that is lost with all of its machines, and take over
its workload clusters, which keep running. No machine of a workload cluster is created,
deleted or changed.

The newest backup is used: that of the metal service on this host, or of the location
--from, a directory or oci://REGISTRY/REPOSITORY. It is opened with the recovery key that
the creation of the cluster left in the directory of the cluster's name, and must be
signed by the CA in the cluster's last kubeconfig there. The spec is that of the backup,
unless -f names another.

Workload clusters are restored paused, and compared with the machines that exist. Those
with exactly the machines of the backup are resumed. A cluster whose machines have
changed since the backup stays paused, and is reported with what has changed; resume it
with "drover resume cluster". Machines of clusters that the backup doesn't know are
reported and left alone.

The command changes nothing while something is left of the management cluster that
could act: its API server, or its machines. --delete-old deletes these machines first.
Progress is recorded, and the same command resumes after an interruption.

An embedded plane is recovered with "drover restore" instead.`,
		Example: `  # Recover from the newest backup on this host
  drover recover mgmt

  # Show what would be done
  drover recover mgmt --dry-run

  # Recover from a registry, with files that were kept elsewhere
  drover recover mgmt --from oci://registry.example.com/backups --identity mgmt-recovery.key --signed-by mgmt.kubeconfig`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.cmd = cmd
	f := cmd.Flags()
	f.StringVarP(&o.file, "filename", "f", "", "`file` with a spec of the management cluster (default: that in the backup)")
	f.StringVar(&o.from, "from", "", "`location` of the backups: a directory or oci://REGISTRY/REPOSITORY (default: the metal service of this host)")
	f.StringVar(&o.backup, "backup", "", "`name` of the backup, a time such as 20260501T120000Z (default: the newest)")
	f.StringVar(&o.signedBy, "signed-by", "", "`file` with a kubeconfig or the CA certificate of the lost management cluster (default: its kubeconfig in the directory of its name)")
	f.BoolVar(&o.deleteOld, "delete-old", false, "delete the machines that are left of the lost management cluster first")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the phases and what each would change, and stop")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	o.output.AddFlag(cmd)
	o.addLimits(cmd)
	o.keys.AddDecryption(cmd)
	return cmd
}

func (o *recoverOptions) run(ctx context.Context, name string) error {
	if err := o.checkFlags(); err != nil {
		return err
	}
	backup, err := o.open(ctx, name)
	if err != nil {
		return err
	}
	config, err := o.spec(ctx, backup)
	if err != nil {
		return err
	}
	planner, err := o.management(config)
	if err != nil {
		return err
	}
	target, ok := planner.(*lifecycle.Management)
	if !ok {
		return fmt.Errorf("cluster %q is not a management cluster", name)
	}
	target.Again = o.again()
	plan, err := (&lifecycle.Recovery{Target: target, Backup: backup, DeleteOld: o.deleteOld}).Plan()
	if err != nil {
		return err
	}
	if err := o.execute(ctx, plan); err != nil || o.dryRun || o.output != "" {
		return err
	}
	fmt.Fprintf(o.io.Err, "\nManagement cluster %s is recovered. Users need new kubeconfigs: see `drover create user --help`. Try:\n\n  drover get clusters --kubeconfig %s\n", name, files(name).Kubeconfig())
	return nil
}

// again returns the command line that resumes an interrupted run.
func (o *recoverOptions) again() string {
	words := o.retryCommand()
	for _, f := range []struct{ name, value string }{{"from", o.from}, {"backup", o.backup}, {"signed-by", o.signedBy}} {
		if f.value != "" {
			words += " --" + f.name + " " + f.value
		}
	}
	if f := o.cmd.Flags().Lookup("identity"); f.Changed {
		words += " --identity " + f.Value.String()
	}
	if o.deleteOld {
		words += " --delete-old"
	}
	return words
}

// spec returns the spec of the file, or of the backup.
func (o *recoverOptions) spec(ctx context.Context, backup *recovery.Backup) (*spec.Config, error) {
	if o.file == "" {
		return backup.Config(ctx)
	}
	config, err := o.read(lifecycle.Create)
	if err != nil {
		return nil, err
	}
	if config.Cluster.Name != backup.Manifest.Cluster || !config.Cluster.IsSelfManaged() {
		return nil, fmt.Errorf("%s: the spec must be that of management cluster %q, whose clusters name it", o.file, backup.Manifest.Cluster)
	}
	return config, nil
}

// open opens the backup. An unfinished run continues with its own.
func (o *recoverOptions) open(ctx context.Context, name string) (*recovery.Backup, error) {
	of := files(name)
	recorded, err := lifecycle.RecordedBackup(of)
	if err != nil {
		return nil, err
	}
	store, err := o.storage(name)
	if err != nil {
		return nil, err
	}
	signers, err := o.signers(of)
	if err != nil {
		return nil, err
	}
	o.keys.DefaultIdentity(of.RecoveryKey())
	identities, err := o.keys.Identities(o.io)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w\nName the recovery key of cluster %s with --identity: its creation wrote %s", err, name, of.RecoveryKey())
	}
	if err != nil {
		return nil, err
	}
	return recovery.Open(ctx, recovery.Source{
		Storage: store, Cluster: name, Name: cmp.Or(o.backup, recorded), Identities: identities, Signers: signers,
	})
}

// storage returns where the backups are: at a location, or at the metal service of this host.
func (o *recoverOptions) storage(name string) (storage.Storage, error) {
	if o.from != "" {
		return storage.Open(o.from, storage.Cluster{Namespace: storage.Management, Name: name}, storage.Access{})
	}
	dir, err := filepath.Abs(metal.DefaultHome())
	if err != nil {
		return nil, err
	}
	home := metal.Home{Dir: dir}
	e, err := home.ReadEndpoint()
	if err != nil {
		return nil, fmt.Errorf("this host has no backups: %w; name their location with --from", err)
	}
	return home.Backups(e.Project, name), nil
}

// signers returns the CAs that the backup must be signed by: those of the user, or those in the
// kubeconfigs that the management cluster had last. Before its first backup, a cluster that was
// recovered has only those of the lost one.
func (o *recoverOptions) signers(of lifecycle.Files) ([]*x509.Certificate, error) {
	if o.signedBy != "" {
		return seal.ReadSigners(o.signedBy)
	}
	var all []*x509.Certificate
	for _, file := range []string{of.Kubeconfig(), of.Lost()} {
		signers, err := seal.ReadSigners(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, signers...)
	}
	if len(all) == 0 {
		return nil, ui.Usagef("name a kubeconfig or the CA certificate of the lost management cluster with --signed-by: anyone can encrypt a backup for an age recipient")
	}
	return all, nil
}

// newResume returns the command that resumes a cluster that a recovery left paused.
func newResume(io *ui.IO) *cobra.Command {
	c := &change{io: io}
	cmd := &cobra.Command{
		Use:     "cluster NAME",
		Aliases: []string{"clusters"},
		Short:   "Resume a cluster that a recovery left paused",
		Long: `Resume reconciliation of a cluster that "drover recover" left paused, because its
machines have changed since the backup. From then on, Drover replaces the machines that
are missing. Machines that the backup doesn't know stay, and are not managed: delete them
once they are replaced.

Whatever a user has paused stays paused.`,
		Example: `  drover resume cluster dev --kubeconfig mgmt/mgmt-eks-a-cluster.kubeconfig`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, _, err := c.plane(&spec.Config{Cluster: &anywherev1.Cluster{}})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			return resume(ctx, io, config, args[0])
		},
	}
	c.cmd = cmd
	cmd.Flags().StringVarP(&c.kubeconfig, "kubeconfig", "k", "", "kubeconfig `file` of the management cluster (-mc is an alias)")
	_ = cmd.MarkFlagFilename("kubeconfig")
	return cmd
}

// resume resumes a cluster that was restored completely.
func resume(ctx context.Context, io *ui.IO, config *rest.Config, name string) error {
	hold, err := bootstrap.HoldOf(ctx, config, name)
	if err != nil {
		return err
	}
	switch hold {
	case bootstrap.NotHeld:
		return fmt.Errorf("no cluster %q was left paused by a recovery: see `drover get clusters`", name)
	case bootstrap.Unfinished:
		return fmt.Errorf("cluster %q is paused by a recovery or a move that is not finished: repeat that command, because the cluster may be incomplete here or managed elsewhere", name)
	}
	if err := bootstrap.Resume(ctx, config, name); err != nil {
		return err
	}
	fmt.Fprintf(io.Err, "Resumed cluster %s.\n", name)
	return nil
}
