package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/gitops"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// newConnectTimeout is how long the manager of a new management cluster may take to connect its
// repository. Its leader may have just started.
const newConnectTimeout = 2 * time.Minute

// keptGitOps is the checkpoint key of whether Drover on the cluster runs GitOps.
const keptGitOps = "gitops"

// preferFluxConfig replaces a GitOpsConfig, which is older, with the FluxConfig that it stands for.
func preferFluxConfig(c *spec.Config) {
	ref := c.Cluster.Spec.GitOpsRef
	if c.GitOps == nil || ref == nil || ref.Kind != anywherev1.GitOpsConfigKind {
		return
	}
	c.Flux, c.GitOps = c.GitOps.FluxConfig(), nil
	c.Cluster.Spec.GitOpsRef = &anywherev1.Ref{Kind: anywherev1.FluxConfigKind, Name: c.Flux.Name}
	c.Warnings = append(c.Warnings, fmt.Sprintf("GitOpsConfig %q becomes a FluxConfig of the same name", c.Flux.Name))
}

// checkDrover rejects a spec that names another version of Drover than the one that would be
// installed.
func (m *Management) checkDrover(context.Context, *phase.Progress) []error {
	if wanted := m.Config.Cluster.Spec.DroverVersion; wanted != "" && wanted != m.version() {
		return []error{fmt.Errorf("the spec of cluster %q names Drover %s, but this is %s: run the command of that version, or change spec.droverVersion", m.Config.Cluster.Name, wanted, m.version())}
	}
	return nil
}

// commits lists what a creation does with Git.
func (m *Management) commits() []string {
	if m.Config.Flux == nil {
		return nil
	}
	return []string{"installs Flux on the cluster", fmt.Sprintf("commits the spec to the repository of FluxConfig %s", m.Config.Flux.Name)}
}

// enabling is the repository of the cluster.
func (m *Management) enabling() gitops.Enabling {
	return gitops.Enabling{FluxConfig: m.Config.Flux.DeepCopy(), Namespaces: []string{m.Config.Cluster.Namespace}, Getenv: os.Getenv}
}

// checkNewRepository checks that the spec of a new cluster can be committed. Once the creation has
// begun, only the credentials must be there: the phase that needs the Git server waits for it.
func (m *Management) checkNewRepository(ctx context.Context, p *phase.Progress) []error {
	if m.Config.Flux == nil {
		return nil
	}
	var problems []error
	if _, err := m.fluxImages(); err != nil {
		problems = append(problems, err)
	}
	e := m.enabling()
	e.New = !m.recovers // The repository has the clusters that are recovered.
	check := func() error { return e.Preflight(ctx, m.Config) }
	if p.Resumed() {
		check = e.CheckEnvironment
	}
	if err := check(); err != nil {
		problems = append(problems, err)
	}
	return problems
}

// checkRepository checks that the spec of an existing cluster can be committed: to the connected
// repository, or to the one that the upgrade connects.
func (m *Management) checkRepository(ctx context.Context, p *phase.Progress) []error {
	if err := m.observeGitOps(ctx, p); err != nil {
		return []error{err}
	}
	var problems []error
	if _, err := m.fluxImages(); err != nil {
		problems = append(problems, err)
	}
	if m.Config.Flux == nil || m.SkipFlux || p.Resumed() {
		return problems
	}
	w, err := m.onItself(ctx)
	if err != nil {
		return append(problems, err)
	}
	plane := &gitops.Plane{Plane: w.plane}
	connected, err := plane.CheckConnected(ctx, m.Config.Flux)
	if err == nil && !connected {
		err = m.enabling().Preflight(ctx, m.Config)
	}
	if err != nil {
		problems = append(problems, err)
	}
	return problems
}

// observeGitOps determines whether Drover on the cluster runs GitOps, once: a resumed upgrade may
// find the cluster busy.
func (m *Management) observeGitOps(ctx context.Context, p *phase.Progress) error {
	if known, err := p.Kept(keptGitOps, &m.runsGitOps); err != nil || known {
		return err
	}
	own, err := m.own()
	if err != nil {
		return err
	}
	if m.runsGitOps, err = bootstrap.RunsGitOps(ctx, own); err != nil {
		return err
	}
	return p.Keep(keptGitOps, m.runsGitOps)
}

// isConnected reports whether the repository of the spec, if it has one, is connected.
func (m *Management) isConnected(ctx context.Context, w *Workload) (bool, error) {
	if m.Config.Flux == nil || m.SkipFlux {
		return true, nil
	}
	return (&gitops.Plane{Plane: w.plane}).IsConnected(ctx, m.Config.Flux)
}

// openRepository connects the repository unless it is, and returns how changes of the cluster get
// there.
func (m *Management) openRepository(ctx context.Context, p *phase.Progress) (*Workload, route, error) {
	w, err := m.onItself(ctx)
	if err != nil {
		return nil, route{}, err
	}
	if err := bootstrap.FluxReady(ctx, w.REST, func(what string) { p.Waiting("Starting Flux on the cluster: %s", what) }); err != nil {
		return nil, route{}, err
	}
	connected, err := m.isConnected(ctx, w)
	if err == nil && !connected {
		p.Waiting("Connecting the repository of FluxConfig %s", m.Config.Flux.Name)
		_, err = (&gitops.Plane{Plane: w.plane}).Enable(ctx, m.enabling())
	}
	if err != nil {
		return nil, route{}, err
	}
	w.connectWithin, w.justConnected = newConnectTimeout, true
	r, err := w.routeOf(ctx, p, m.Config.Cluster)
	return w, r, err
}

// commitNew is the phase that commits the spec of a new management cluster, and waits until Flux
// has applied that commit.
func (m *Management) commitNew(ctx context.Context, p *phase.Progress) error {
	if m.Config.Flux == nil {
		return phase.Skip(withoutGitOps)
	}
	w, r, err := m.openRepository(ctx, p)
	if err != nil {
		return err
	}
	if !r.isGit() {
		return &GitError{Cluster: m.Config.Cluster.Name, Problem: r.Reason}
	}
	if m.recovers {
		return w.commit(ctx, p, Upgrade, r)
	}
	return w.commit(ctx, p, Create, r)
}

// commitUpgrade commits the spec of an upgraded management cluster. An outage of the Git server
// must not leave anything paused, so it resumes the workload clusters first. Only the management
// cluster stays suspended in Flux, which would revert the upgrade before the commit.
func (m *Management) commitUpgrade(ctx context.Context, p *phase.Progress) error {
	if m.Config.Flux == nil {
		return nil
	}
	itself, err := m.onItself(ctx)
	if err != nil {
		return err
	}
	if err := m.resumeClusters(ctx, p, itself); err != nil {
		return err
	}
	if err := m.resumeFlux(ctx, p, itself, fluxSource); err != nil {
		return err
	}
	w, r, err := m.openRepository(ctx, p)
	switch {
	case err != nil:
		return err
	case !r.isGit() && m.SkipFlux:
		p.Note("%s; commit %s yourself", r.Reason, m.files().Spec())
		return nil
	case !r.isGit():
		return &GitError{Cluster: m.Config.Cluster.Name, Problem: r.Reason}
	}
	change, err := w.requestCommit(ctx, p, Upgrade, r)
	if err != nil {
		return err
	}
	return change.until(ctx, committed, m.ControlPlane)
}

// leave is the phase after which nothing depends on the cluster itself: its files are removed from
// Git, so that nothing brings it back, and its objects are on the bootstrap plane.
func (m *Management) leave(ctx context.Context, p *phase.Progress) error {
	w, live, err := m.home(ctx, p)
	if err != nil {
		return err
	}
	if live != nil && !w.onBootstrap {
		if err := m.removeFromGit(ctx, p, w, live); err != nil {
			return err
		}
	}
	return m.moveToBootstrap(ctx, p)
}

// removeFromGit removes the files of the cluster. Flux doesn't delete it then, because nobody
// confirms that.
func (m *Management) removeFromGit(ctx context.Context, p *phase.Progress, w *Workload, live *anywherev1.Cluster) error {
	r, err := w.routeOf(ctx, p, live)
	if err != nil {
		return err
	}
	if !r.isGit() {
		return p.Keep(keptGit, gitRecord{Reason: r.Reason})
	}
	change, err := w.requestCommit(ctx, p, Delete, r)
	if err != nil {
		return err
	}
	if err := change.until(ctx, committed, m.Limits.Delete); err != nil {
		return err
	}
	if err := keepCommit(p, change.commit); err != nil {
		return err
	}
	_, err = m.suspendFlux(ctx, p, w)
	return err
}

// keepCommit adds the commit to the record, because the cluster that knows it is going to be
// deleted.
func keepCommit(p *phase.Progress, commit string) error {
	record, err := gitRecordOf(p)
	if err != nil {
		return err
	}
	record.Commit = commit
	return p.Keep(keptGit, record)
}

// reportRemoved is the phase that reports by which commit the files were removed.
func (m *Management) reportRemoved(_ context.Context, p *phase.Progress) error {
	record, err := gitRecordOf(p)
	if err != nil {
		return err
	}
	if record.Commit == "" {
		return phase.Skip("%s", cmp.Or(record.Reason, withoutGitOps))
	}
	p.Note("%s by commit %s", committed, shortCommit(record.Commit))
	return nil
}
