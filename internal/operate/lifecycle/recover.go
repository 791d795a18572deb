package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/operate/recovery"
)

// recoverCommand is the command of a recovery in checkpoints.
const recoverCommand = "recover"

// Checkpoint keys of a recovery.
const (
	keptBackup  = "backup"       // the name of the backup
	keptRemains = "old-machines" // devices of the lost management cluster that are deleted
	keptReplace = "replacing"    // the lost management cluster is known to be gone
)

// Recovery plans how a management cluster that is lost is created again, and takes over the
// workload clusters of a backup. No machine of a workload cluster is created, deleted or changed.
//
//	backup ──▶ new management cluster: namespaces, paused clusters ──▶ resumed clusters
type Recovery struct {
	// Target is the new management cluster, with the spec of the lost one.
	Target *Management
	Backup *recovery.Backup
	// DeleteOld deletes the machines that are left of the lost management cluster.
	DeleteOld bool

	clusters []recovery.Cluster
}

// RecordedBackup returns the backup that an unfinished recovery uses, or the empty string. The new
// management cluster may have made newer ones.
func RecordedBackup(f Files) (string, error) {
	name := ""
	_, err := f.Record().Kept(recoverCommand, keptBackup, &name)
	return name, err
}

// Plan returns the plan.
func (r *Recovery) Plan() (*phase.Plan, error) {
	m := r.Target
	m.firstInstall, m.recovers = true, true
	m.registry = r.Backup.Manifest.Registry // Another address would install every add-on again.
	if len(r.key()) > 0 {
		m.bundleKey = m.files().path("bundle.key")
	}
	preferFluxConfig(m.Config)
	spec, err := fingerprint(m.Config)
	if err != nil {
		return nil, err
	}
	name := m.Config.Cluster.Name
	return &phase.Plan{
		Command: recoverCommand, Cluster: name, Again: m.Again, Fingerprint: spec + " from " + r.Backup.Name,
		Phases: []phase.Phase{
			{Name: SetupAndValidate, Summary: "Verify the backup and run preflight checks", Repeat: true, Run: r.setup},
			{Name: CreateBootstrapCluster, Summary: summaryBootstrap, Run: r.withBundleKey(r.begin), Changes: r.begins()},
			{Name: CreateWorkloadCluster, Summary: "Create the machines of the management cluster and install Kubernetes", Run: r.withBundleKey(m.create), Changes: m.clusterOn(nil, "").creates()},
			{Name: MoveManagementCluster, Summary: "Install Drover on the cluster and move its objects there", Run: r.withBundleKey(m.moveToItself), Fixes: true, Changes: []string{
				"installs Drover on the cluster", "moves the cluster's objects to it",
			}},
			{Name: InstallEKSAComponents, Summary: "Wait until the cluster manages itself", Run: m.settleNew, Changes: []string{"makes the cluster manage itself"}},
			{Name: RestoreClusters, Summary: "Restore the workload clusters from the backup, paused", Run: r.restore, Changes: []string{
				fmt.Sprintf("restores the workload clusters of backup %s", r.Backup.Name),
			}},
			{Name: TakeOverClusters, Summary: "Resume the workload clusters whose machines are those of the backup", Run: r.takeOver, Changes: []string{
				"resumes the clusters whose machines have not changed since the backup", "schedules backups of the new management cluster",
			}},
			{Name: InstallAddOns, Summary: summaryGitCommitted, Run: r.connectGit, Changes: m.commits()},
			{Name: DeleteBootstrap, Summary: summaryDeleteBootstrap, Run: m.deleteBootstrap, Changes: m.removesBootstrap()},
		},
	}, nil
}

func (r *Recovery) begins() []string {
	lines := r.Target.startsBootstrap()
	if r.DeleteOld {
		lines = append([]string{"deletes the machines that are left of the lost management cluster"}, lines...)
	}
	return lines
}

// setup checks everything before anything changes.
func (r *Recovery) setup(ctx context.Context, p *phase.Progress) error {
	m := r.Target
	if err := checkSpec(m.Config, p); err != nil {
		return err
	}
	if err := r.startMetal(ctx, p); err != nil {
		return err
	}
	checks := []check{r.checkBackup, m.checkDrover, r.checkGone, r.checkBootstrap, m.checkMachine, m.checkRegistry, m.checkNewRepository, m.checkCapacity, r.checkClusters}
	if err := preflight(ctx, p, checks...); err != nil {
		return err
	}
	if err := p.Keep(keptBackup, r.Backup.Name); err != nil {
		return err
	}
	return identify(p, m.Config)
}

func (r *Recovery) checkBackup(_ context.Context, p *phase.Progress) []error {
	p.Note("using backup %s, which is %s old: what changed since is not in it", r.Backup.Name, r.Backup.Age(time.Now()))
	if err := r.Backup.CheckVersion(r.Target.version()); err != nil {
		return []error{err}
	}
	return nil
}

// checkBootstrap rejects a bootstrap plane that another run has left.
func (r *Recovery) checkBootstrap(_ context.Context, p *phase.Progress) []error {
	m := r.Target
	if p.Resumed() || !m.hasBootstrap() {
		return nil
	}
	return []error{fmt.Errorf("another run left a bootstrap plane for cluster %q in %q: resume it, or remove the plane with `drover down --purge --home %s`",
		m.Config.Cluster.Name, m.Bootstrap.Dir, m.Bootstrap.Dir)}
}

// checkClusters reports what becomes of each cluster.
func (r *Recovery) checkClusters(ctx context.Context, p *phase.Progress) []error {
	if err := r.compare(ctx); err != nil {
		return []error{err}
	}
	for _, c := range r.clusters {
		p.Note("%s", c.Message())
	}
	return nil
}

// key returns the key that signs the bundles in the backup, if it has one.
func (r *Recovery) key() []byte {
	return r.Backup.Objects.Secret(client.ObjectKey{Namespace: config.Namespace, Name: config.BundleKeySecret})[config.BundleKeyFile]
}

// withBundleKey runs a phase with the key that signs bundles in a file, which is removed
// afterwards.
func (r *Recovery) withBundleKey(run func(context.Context, *phase.Progress) error) func(context.Context, *phase.Progress) error {
	return func(ctx context.Context, p *phase.Progress) error {
		if len(r.key()) == 0 {
			return run(ctx, p)
		}
		if err := r.Target.files().write(r.Target.bundleKey, r.key()); err != nil {
			return err
		}
		defer func() { _ = errors.Join(os.Remove(r.Target.bundleKey), atomicfile.Sweep(r.Target.bundleKey)) }()
		return run(ctx, p)
	}
}

// begin makes sure that nothing is left of the lost management cluster that could act, and starts
// the bootstrap plane.
func (r *Recovery) begin(ctx context.Context, p *phase.Progress) error {
	if err := r.replace(ctx, p); err != nil {
		return err
	}
	return r.Target.startBootstrapAndDeliver(ctx, p)
}

// replace deletes the machines of the lost management cluster if the user asked for that, and sets
// its kubeconfig aside. It does so once: later, machines of that name are those of the new one.
func (r *Recovery) replace(ctx context.Context, p *phase.Progress) error {
	done := false
	if _, err := p.Kept(keptReplace, &done); err != nil || done {
		return err
	}
	if r.DeleteOld {
		if err := r.deleteRemains(ctx, p); err != nil {
			return err
		}
	}
	files := r.Target.files()
	err := os.Rename(files.Kubeconfig(), files.Lost())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("setting the kubeconfig of the lost management cluster aside: %w", err)
	}
	return p.Keep(keptReplace, true)
}

// restore creates the objects of all clusters on the new management cluster. No controller acts on
// them yet.
func (r *Recovery) restore(ctx context.Context, p *phase.Progress) error {
	own, err := r.Target.own()
	if err != nil {
		return err
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	p.Waiting("Restoring namespaces and access")
	if err := bootstrap.RestoreNamespaces(ctx, r.Backup.Objects, own); err != nil {
		return err
	}
	for _, c := range r.clusters {
		if !c.Restored() {
			continue
		}
		p.Waiting("Restoring cluster %s", c.Name)
		if err := bootstrap.Restore(ctx, r.Backup.Objects, own, c.Name); err != nil {
			return err
		}
	}
	p.Waiting("Restoring add-ons, packages and audit records")
	return bootstrap.RestoreShared(ctx, r.Backup.Objects, own, r.Target.Config.Cluster.Name)
}

// takeOver resumes the clusters that have exactly the machines of the backup, and waits until they
// are ready.
func (r *Recovery) takeOver(ctx context.Context, p *phase.Progress) error {
	own, err := r.Target.own()
	if err != nil {
		return err
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	for _, c := range r.clusters {
		if c.Verdict != recovery.Intact {
			p.Note("%s", c.Message())
			continue
		}
		if err := bootstrap.Resume(ctx, own, c.Name); err != nil {
			return err
		}
	}
	for _, c := range r.clusters {
		if err := r.untilReady(ctx, p, c); err != nil {
			return err
		}
	}
	return r.Target.scheduleBackups(ctx, p, own)
}

// untilReady waits until a cluster is ready. One that doesn't get there, which it may not have been
// before, doesn't keep the others from being taken over.
func (r *Recovery) untilReady(ctx context.Context, p *phase.Progress, c recovery.Cluster) error {
	if c.Verdict != recovery.Intact {
		return nil
	}
	own, err := r.Target.own()
	if err != nil {
		return err
	}
	w := r.Target.planeOf(client.ObjectKey{Name: c.Name}, own, "its kubeconfig")
	if err := w.connect(ctx); err != nil {
		return err
	}
	live, err := w.plane.Find(ctx, "", c.Name)
	var none *inspect.NotFoundError
	if errors.As(err, &none) {
		return nil // A cluster of manifests has only objects of Cluster API.
	}
	if err != nil {
		return err
	}
	w.Config.Cluster = live
	limits := r.Target.Limits
	limits.ControlPlane = cmp.Or(limits.ControlPlane, takeOverTimeout)
	if err := w.follow(p, waitingFor).untilReady(ctx, limits); err != nil {
		if ctx.Err() != nil {
			return err
		}
		p.Note("cluster %s is not ready yet: %v", c.Name, err)
	}
	return nil
}

// takeOverTimeout is how long a cluster may take to become ready, without a limit of the user's.
const takeOverTimeout = 10 * time.Minute

// connectGit connects the repository, from where specs that are newer than the backup come back.
// Flux would create a cluster again that the backup doesn't have, beside its running machines.
func (r *Recovery) connectGit(ctx context.Context, p *phase.Progress) error {
	if r.Target.Config.Flux == nil {
		return phase.Skip(withoutGitOps)
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	for _, c := range r.clusters {
		if !c.Restored() && len(c.Added) > 0 {
			return phase.Skip("not connected: Flux would create cluster %s again beside its running machines; remove it from Git or delete its machines, then run `drover gitops enable`", c.Name)
		}
	}
	return r.Target.commitNew(ctx, p)
}
