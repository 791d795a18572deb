package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

// Upgrade is the plan to bring a management cluster to a new spec, and Drover on it to this version.
func (m *Management) Upgrade() (*workflow.Plan, error) {
	var changes []string
	for _, d := range m.differences {
		changes = append(changes, "changes "+d.String())
	}
	return m.plan(workflow.Upgrade,
		workflow.Phase{Name: workflow.SetupAndValidate, Repeat: true, Run: m.setupUpgrade},
		workflow.Phase{Name: workflow.UpdateSecrets, Run: m.updateSecrets, Changes: []string{"renews the credentials for machines, if they have changed"}},
		workflow.Phase{Name: workflow.UpgradeNeeded, Run: m.upgradeNeeded},
		workflow.Phase{Name: workflow.PauseEksAAndFluxReconcile, Run: m.pauseOthers, Changes: []string{"pauses the workload clusters, which run on meanwhile"}},
		workflow.Phase{Name: workflow.CreateBootstrapCluster, Run: m.startBootstrap, Changes: []string{"starts a management plane in " + m.Bootstrap.Dir}},
		workflow.Phase{Name: workflow.InstallCAPI, Run: m.readyBootstrap},
		workflow.Phase{Name: workflow.MoveManagementToBootstrap, Run: m.moveToBootstrap, Changes: []string{"moves all objects of the cluster to that plane"}},
		workflow.Phase{Name: workflow.UpgradeWorkloadCluster, Run: m.upgrade, Changes: changes},
		workflow.Phase{Name: workflow.MoveManagementToWorkload, Run: m.moveToItself, Changes: []string{"brings Drover on the cluster to this version", "moves all objects back"}},
		workflow.Phase{Name: workflow.UpdateClusterAndGitResources, Run: m.writeDown, Changes: []string{"writes " + m.files().Spec()}},
		workflow.Phase{Name: workflow.ResumeFluxReconcile, Run: m.resumeOthers, Changes: []string{"resumes exactly the clusters that were paused"}},
		workflow.Phase{Name: workflow.DeleteBootstrap, Run: m.deleteBootstrap, Changes: []string{"removes " + m.Bootstrap.Dir}},
	)
}

// Differences reads what an upgrade would change. Nothing is changed.
func (m *Management) Differences(ctx context.Context) ([]Difference, error) {
	w, err := m.itself()
	if err != nil {
		return nil, err
	}
	m.differences, err = w.Differences(ctx)
	return m.differences, err
}

// setupUpgrade looks at the cluster where its objects are, which after an interruption may be the plane of this machine.
func (m *Management) setupUpgrade(ctx context.Context, p *workflow.Progress) error {
	if err := checkSpec(m.Config, p); err != nil {
		return err
	}
	w, live, err := m.home(ctx, p)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("there is no cluster %q, neither on itself nor on a plane of this machine: create it first", m.Config.Cluster.Name)
	}
	if err := preflight(ctx, p, w.checkVersions, w.checkThere); err != nil {
		return err
	}
	if err := preflight(ctx, p, w.checkChange); err != nil {
		return err
	}
	m.differences = w.differences
	return nil
}

func (m *Management) updateSecrets(ctx context.Context, p *workflow.Progress) error {
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
		return workflow.Skip("no other credentials are given in the environment")
	case err == nil && !changed:
		return workflow.Skip("the credentials have not changed")
	}
	return err
}

// upgradeNeeded ends the workflow if the cluster is as it should be, and Drover on it is this one.
func (m *Management) upgradeNeeded(ctx context.Context, p *workflow.Progress) error {
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
	if version.SameBuild(installed, m.version()) && w.follow(p).reached(ctx, live) {
		return workflow.Finish("the cluster is as the spec wants it, and has this version of Drover")
	}
	return nil
}

// readyBootstrap makes sure that the plane of this machine answers and has all that the cluster needs, also after a restart of the machine.
func (m *Management) readyBootstrap(ctx context.Context, p *workflow.Progress) error {
	return m.startBootstrap(ctx, p)
}

func (m *Management) moveToBootstrap(ctx context.Context, p *workflow.Progress) error {
	w, live, err := m.home(ctx, p)
	if err != nil {
		return err
	}
	bootstrap, err := m.onBootstrap(ctx, p)
	switch {
	case err != nil:
		return err
	case live == nil:
		return workflow.Skip("there is nothing to move")
	case w.REST.Host == bootstrap.REST.Host:
		// It is there already, perhaps still paused for the way.
		return management.Resume(ctx, bootstrap.REST, m.Config.Cluster.Name)
	}
	p.Waiting("the objects of the cluster to be moved to the plane of this machine")
	return management.Move(ctx, w.REST, bootstrap.REST, m.Config.Cluster.Name)
}

// upgrade brings the cluster to its new spec.
func (m *Management) upgrade(ctx context.Context, p *workflow.Progress) error {
	w, err := m.workAt(ctx, p)
	if err != nil {
		return err
	}
	if err := w.applyAll(ctx); err != nil {
		return err
	}
	return w.follow(p).untilReady(ctx, m.Limits)
}

// writeDown waits until the cluster is ready by its own account, and writes the files about it.
func (m *Management) writeDown(ctx context.Context, p *workflow.Progress) error {
	if m.Config.Cluster.Spec.GitOpsRef != nil {
		p.Note("%v", withoutGit(m.Config))
	}
	return m.settle(ctx, p)
}
