package lifecycle

import (
	"context"
	"fmt"
	"strings"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

// Delete is the plan to delete a management cluster, or what there is of one that was never finished.
func (m *Management) Delete() (*workflow.Plan, error) {
	return m.plan(workflow.Delete,
		workflow.Phase{Name: workflow.SetupAndValidate, Repeat: true, Run: m.setupDelete},
		workflow.Phase{Name: workflow.CreateBootstrapCluster, Run: m.startBootstrap, Changes: []string{"starts a management plane in " + m.Bootstrap.Dir}},
		workflow.Phase{Name: workflow.InstallCAPI, Run: m.readyBootstrap},
		workflow.Phase{Name: workflow.MoveManagementToBootstrap, Run: m.moveToBootstrap, Changes: []string{"moves all objects of the cluster to that plane"}},
		workflow.Phase{Name: workflow.DeleteWorkloadCluster, Run: m.delete, Changes: []string{
			fmt.Sprintf("deletes Cluster %s with its machines and addresses", m.Config.Cluster.Name), "removes " + m.files().Kubeconfig(),
		}},
		workflow.Phase{Name: workflow.CleanupGitRepo, Run: m.withoutGit},
		workflow.Phase{Name: workflow.DeleteBootstrap, Run: m.deleteBootstrap, Changes: []string{"removes " + m.Bootstrap.Dir}},
	)
}

func (m *Management) setupDelete(ctx context.Context, p *workflow.Progress) error {
	w, live, err := m.home(ctx, p)
	switch {
	case m.Undo && live == nil && !p.Resumed() && !m.hasBootstrap() && !exists(m.files().Kubeconfig()):
		return workflow.Finish("nothing was made")
	case err != nil && !p.Resumed():
		return err
	case live == nil && !p.Resumed() && !m.hasBootstrap():
		return fmt.Errorf("there is no cluster %q, neither on itself nor on a plane of this machine", m.Config.Cluster.Name)
	case live == nil:
		return nil
	}
	m.Config.Cluster.Namespace = live.Namespace
	return preflight(ctx, p, w.checkVersions, func(ctx context.Context, _ *workflow.Progress) []error { return m.checkAlone(ctx, w) })
}

// checkAlone refuses to delete what workload clusters depend on.
func (m *Management) checkAlone(ctx context.Context, w *Workload) []error {
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
	return []error{fmt.Errorf("management cluster %q still has workload clusters (%s): delete them first, or nobody could any more", m.Config.Cluster.Name, strings.Join(names, ", "))}
}

// delete deletes the cluster on the plane of this machine.
func (m *Management) delete(ctx context.Context, p *workflow.Progress) error {
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
