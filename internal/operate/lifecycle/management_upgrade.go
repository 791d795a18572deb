package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// Upgrade plans the upgrade of a management cluster to a new spec, and of Drover on it to this
// version.
func (m *Management) Upgrade() (*phase.Plan, error) {
	preferFluxConfig(m.Config)
	return m.plan(Upgrade, m.Config, []phase.Phase{
		{Name: SetupAndValidate, Summary: summaryValidate, Repeat: true, Run: m.setupUpgrade},
		{Name: UpdateSecrets, Summary: "Update the cluster's credentials for machines", Run: m.updateSecrets, Changes: []string{"updates the credentials for machines, if they changed"}},
		{Name: UpgradeNeeded, Summary: "Check whether an upgrade is needed", Run: m.upgradeNeeded},
		{Name: PauseEksAAndFluxReconcile, Summary: summaryPauseOthers, Run: m.pauseOthers, Changes: []string{pausesOthers}},
		{Name: CreateBootstrapCluster, Summary: summaryBootstrap, Run: m.startBootstrap, Changes: m.startsBootstrap()},
		{Name: InstallCAPI, Summary: summaryBootstrapReady, Run: m.startBootstrap},
		{Name: MoveManagementToBootstrap, Summary: summaryMoveToBootstrap, Run: m.moveToBootstrap, Changes: []string{movesToBootstrap}},
		{Name: UpgradeWorkloadCluster, Summary: "Upgrade the cluster to the new spec", Run: m.upgrade, Changes: changeLines(m.differences)},
		{Name: MoveManagementToWorkload, Summary: summaryMoveBack, Run: m.moveToItself, Changes: []string{upgradesDrover, movesBack}},
		{Name: UpdateClusterAndGitResources, Summary: "Wait for the cluster, and write the new spec to a file and, with GitOps, to Git", Run: m.recordSpec, Changes: []string{"writes " + m.files().Spec()}},
		{Name: ResumeFluxReconcile, Summary: summaryResumeOthers, Run: m.resumeOthers, Changes: []string{resumesOthers}},
		{Name: DeleteBootstrap, Summary: summaryDeleteBootstrap, Run: m.deleteBootstrap, Changes: m.removesBootstrap()},
	})
}

// Differences returns the fields that an upgrade would change. It changes nothing.
func (m *Management) Differences(ctx context.Context) ([]Difference, error) {
	w, err := m.ownCluster()
	if err != nil {
		return nil, err
	}
	m.differences, err = w.Differences(ctx)
	return m.differences, err
}

// setupUpgrade checks the cluster where its objects are. After an interruption that may be the
// bootstrap plane.
func (m *Management) setupUpgrade(ctx context.Context, p *phase.Progress) error {
	if err := checkSpec(m.Config, p); err != nil {
		return err
	}
	w, live, err := m.home(ctx, p)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("cluster %q not found, neither on itself nor on a bootstrap plane: create it first", m.Config.Cluster.Name)
	}
	if err := preflight(ctx, p, w.checkVersions, w.checkUpgradable, m.checkDrover, m.checkRepository); err != nil {
		return err
	}
	if err := preflight(ctx, p, w.checkChange, w.checkGrowth); err != nil {
		return err
	}
	m.differences = w.differences
	return nil
}

func (m *Management) updateSecrets(ctx context.Context, p *phase.Progress) error {
	w, _, err := m.home(ctx, p)
	if err != nil {
		return err
	}
	if err := m.writeRegistry(ctx, w.plane.Client); err != nil {
		return err
	}
	changed, err := m.renewCredentials(ctx, w.plane.Client)
	switch {
	case errors.Is(err, errNoCredentials):
		return phase.Skip("the environment has no other credentials")
	case err == nil && !changed:
		return phase.Skip("the credentials have not changed")
	}
	return err
}

// upgradeNeeded finishes the run if both the cluster and Drover on it are up to date.
func (m *Management) upgradeNeeded(ctx context.Context, p *phase.Progress) error {
	if len(m.differences) > 0 || m.hasBootstrap() {
		return nil
	}
	w, live, err := m.home(ctx, p)
	if err != nil {
		return err
	}
	installed, err := planeVersion(ctx, w.plane)
	if err != nil {
		return err
	}
	connected, err := m.isConnected(ctx, w)
	if err != nil {
		return err
	}
	if connected && version.SameBuild(installed, m.version()) && w.follow(p, upgrading).reached(ctx, live) {
		return phase.Finish("the cluster is up to date, and so is Drover on it")
	}
	return nil
}

// moveToBootstrap moves the cluster's objects to the bootstrap plane, unless they are there.
func (m *Management) moveToBootstrap(ctx context.Context, p *phase.Progress) error {
	w, live, err := m.home(ctx, p)
	if err != nil {
		return err
	}
	target, err := m.onBootstrap(ctx, p)
	switch {
	case err != nil:
		return err
	case live == nil:
		return phase.Skip("nothing to move")
	case w.REST.Host == target.REST.Host:
		// It has arrived, but may still be paused.
		return bootstrap.Resume(ctx, target.REST, m.Config.Cluster.Name)
	}
	p.Waiting("Moving the cluster's objects to the bootstrap plane")
	return bootstrap.Move(ctx, w.REST, target.REST, m.Config.Cluster.Name)
}

// upgrade upgrades the cluster from the bootstrap plane.
func (m *Management) upgrade(ctx context.Context, p *phase.Progress) error {
	w, err := m.prepareBootstrap(ctx, p)
	if err != nil {
		return err
	}
	if err := w.applyAll(ctx); err != nil {
		return err
	}
	return w.follow(p, upgrading).untilReady(ctx, m.Limits)
}

// recordSpec waits until the cluster, which manages itself again, is ready, writes its files and
// commits its spec.
func (m *Management) recordSpec(ctx context.Context, p *phase.Progress) error {
	if err := m.settle(ctx, p); err != nil {
		return err
	}
	return m.commitUpgrade(ctx, p)
}

// Versions returns the versions of Kubernetes and Drover before and after an upgrade.
func (m *Management) Versions(ctx context.Context) ([]Difference, error) {
	w, err := m.ownCluster()
	if err != nil {
		return nil, err
	}
	return w.Versions(ctx)
}
