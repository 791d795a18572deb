package lifecycle

import (
	"context"
	"fmt"
	"strings"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// Delete plans the deletion of a management cluster, or of what exists of an unfinished one.
func (m *Management) Delete() (*phase.Plan, error) {
	return m.plan(Delete, m.Config, []phase.Phase{
		{Name: SetupAndValidate, Summary: "Run preflight checks", Repeat: true, Run: m.setupDelete},
		{Name: CreateBootstrapCluster, Summary: summaryBootstrap, Run: m.startBootstrap, Changes: m.startsBootstrap()},
		{Name: InstallCAPI, Summary: summaryBootstrapReady, Run: m.startBootstrap},
		{Name: MoveManagementToBootstrap, Summary: "Remove the cluster's files from Git, with GitOps, and move its objects to the bootstrap plane", Run: m.leave, Changes: []string{movesToBootstrap}},
		{Name: DeleteWorkloadCluster, Summary: summaryDelete, Run: m.delete, Changes: []string{
			fmt.Sprintf("deletes Cluster %s with its machines and addresses", m.Config.Cluster.Name), "removes " + m.files().Kubeconfig(),
		}},
		{Name: CleanupGitRepo, Summary: summaryGitRemoved, Run: m.reportRemoved},
		{Name: DeleteBootstrap, Summary: summaryDeleteBootstrap, Run: m.deleteBootstrap, Changes: m.removesBootstrap()},
	})
}

func (m *Management) setupDelete(ctx context.Context, p *phase.Progress) error {
	if m.Undo {
		if err := m.checkUnfinished(p); err != nil {
			return err
		}
	}
	w, live, err := m.home(ctx, p)
	switch {
	case m.Undo && live == nil && !p.Resumed() && !m.hasBootstrap() && !exists(m.files().Kubeconfig()):
		return phase.Finish("nothing was created")
	case err != nil && !p.Resumed():
		return err
	case live == nil && !p.Resumed() && !m.hasBootstrap():
		return fmt.Errorf("cluster %q not found, neither on itself nor on a bootstrap plane", m.Config.Cluster.Name)
	case live == nil:
		return nil
	}
	if err := w.checkLeft(p, live); err != nil {
		return err
	}
	m.Config.Cluster.Namespace = live.Namespace
	return preflight(ctx, p, w.checkVersions, func(ctx context.Context, _ *phase.Progress) []error { return m.checkWorkloads(ctx, w) })
}

// checkUnfinished finishes a cleanup that has nothing to do, and rejects one without a recorded
// creation.
func (m *Management) checkUnfinished(p *phase.Progress) error {
	id, err := creation(p)
	switch {
	case err != nil || id != "":
		return err
	case !m.hasBootstrap() && !exists(m.files().Kubeconfig()):
		return phase.Finish("nothing was created")
	}
	return &NotLeftError{Cluster: m.Config.Cluster.Name, Path: m.files().Record().Path()}
}

// checkWorkloads rejects the deletion of a management cluster that has workload clusters.
func (m *Management) checkWorkloads(ctx context.Context, w *Workload) []error {
	others, err := m.others(ctx, w)
	if err != nil {
		return []error{err}
	}
	var names []string
	for _, h := range others {
		if _, ours := h.Object.(*anywherev1.Cluster); ours {
			names = append(names, h.GetNamespace()+"/"+h.GetName())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []error{fmt.Errorf("management cluster %q still has workload clusters (%s): delete them first", m.Config.Cluster.Name, strings.Join(names, ", "))}
}

// delete deletes the cluster from the bootstrap plane.
func (m *Management) delete(ctx context.Context, p *phase.Progress) error {
	w, err := m.onBootstrap(ctx, p)
	if err != nil {
		return err
	}
	live, err := w.plane.Find(ctx, m.Config.Cluster.Namespace, m.Config.Cluster.Name)
	if err == nil {
		err = annotate(ctx, w.plane.Client, live, map[string]string{anywherev1.ManagedByCLIAnnotation: "true"})
		if err != nil {
			return err
		}
	}
	return w.delete(ctx, p)
}
