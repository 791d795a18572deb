package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

// Upgrade is the plan to bring a workload cluster to a new spec.
func (w *Workload) Upgrade() (*workflow.Plan, error) {
	return w.plan(workflow.Upgrade,
		workflow.Phase{Name: workflow.SetupAndValidate, Repeat: true, Run: w.setupUpgrade},
		workflow.Phase{Name: workflow.PauseEksAAndFluxReconcile, Run: w.connected(w.pause)},
		workflow.Phase{Name: workflow.UpgradeWorkloadCluster, Run: w.connected(w.upgrade), Changes: w.changes()},
		workflow.Phase{Name: workflow.UpdateClusterAndGitResources, Run: w.connected(w.writeDown), Changes: []string{"writes " + w.files().Spec()}},
		workflow.Phase{Name: workflow.ResumeFluxReconcile, Run: w.connected(w.resume)},
	)
}

// Differences reads what an upgrade would change, field by field. Nothing is changed.
func (w *Workload) Differences(ctx context.Context) ([]Difference, error) {
	if err := spec.Validate(w.Config).Err(); err != nil {
		return nil, err
	}
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	became, problems := w.rehearse(ctx, nil)
	if len(problems) > 0 {
		return nil, &PreflightError{Problems: problems}
	}
	err := w.compare(ctx, became)
	return w.differences, err
}

func (w *Workload) changes() []string {
	out := make([]string, 0, len(w.differences))
	for _, d := range w.differences {
		out = append(out, "changes "+d.String())
	}
	return out
}

func (w *Workload) setupUpgrade(ctx context.Context, p *workflow.Progress) error {
	if err := checkSpec(w.Config, p); err != nil {
		return err
	}
	if err := w.connect(ctx); err != nil {
		return err
	}
	if err := preflight(ctx, p, w.checkVersions, w.checkOffered, w.checkThere); err != nil {
		return err
	}
	return preflight(ctx, p, w.checkChange)
}

// checkThere makes sure that there is a cluster to upgrade, and that it may be changed.
func (w *Workload) checkThere(ctx context.Context, p *workflow.Progress) []error {
	live, err := w.plane.Find(ctx, w.Config.Cluster.Namespace, w.Config.Cluster.Name)
	if err != nil {
		return []error{err}
	}
	if !live.DeletionTimestamp.IsZero() {
		return []error{fmt.Errorf("cluster %q is being deleted", live.Name)}
	}
	ours := false
	if _, err := p.Kept(keptPaused, &ours); err != nil {
		return []error{err}
	}
	// What a move paused is resumed by the same move.
	if live.IsPaused() && !ours && live.Annotations[management.PausedForMove] == "" {
		return []error{fmt.Errorf("cluster %q is paused: find out who did that and why, then remove the annotation %s", live.Name, anywherev1.PausedAnnotation)}
	}
	if tree, err := w.plane.Tree(ctx, live); err == nil {
		if answer := inspect.Why(tree, time.Now()); !answer.Ready && !p.Resumed() {
			p.Note("the cluster is not ready as it is: %s", answer.Deepest())
		}
	}
	if err := spec.ValidateUpdate(live, w.Config.Cluster).Err(); err != nil {
		return []error{err}
	}
	return nil
}

// checkChange has the plane judge the new spec, and remembers what it changes.
func (w *Workload) checkChange(ctx context.Context, p *workflow.Progress) []error {
	became, problems := w.rehearse(ctx, p)
	if len(problems) > 0 {
		return problems
	}
	if err := w.compare(ctx, became); err != nil {
		return []error{err}
	}
	for _, d := range w.differences {
		p.Note("changes %s", d)
	}
	return nil
}

// compare finds the differences between what is there and what it would become.
func (w *Workload) compare(ctx context.Context, became []*unstructured.Unstructured) error {
	w.differences = nil
	for _, u := range became {
		name := u.GetKind() + "/" + u.GetName()
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(u.GroupVersionKind())
		err := w.plane.Client.Get(ctx, client.ObjectKeyFromObject(u), live)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		w.differences = append(w.differences, differences(name, live.Object["spec"], u.Object["spec"])...)
	}
	return nil
}

// changedObjects is how many objects differ.
func (w *Workload) changedObjects() int {
	var names []string
	for _, d := range w.differences {
		names = append(names, d.Object)
	}
	slices.Sort(names)
	return len(slices.Compact(names))
}

// upgrade applies the new spec and follows it until the cluster is as it says.
func (w *Workload) upgrade(ctx context.Context, p *workflow.Progress) error {
	if len(w.differences) == 0 {
		live := &anywherev1.Cluster{}
		if err := w.plane.Client.Get(ctx, w.key(), live); err != nil {
			return fmt.Errorf("reading cluster %q: %w", w.key().Name, err)
		}
		if !live.IsPaused() && w.follow(p).reached(ctx, live) {
			return workflow.Skip("the cluster is as the spec wants it")
		}
	}
	if err := w.applyAll(ctx); err != nil {
		return err
	}
	if err := w.unpause(ctx, p); err != nil {
		return err
	}
	return w.follow(p).untilReady(ctx, w.Limits)
}

// writeDown writes the files about the cluster.
func (w *Workload) writeDown(ctx context.Context, p *workflow.Progress) error {
	if w.Config.Cluster.Spec.GitOpsRef != nil {
		p.Note("%v", withoutGit(w.Config))
	}
	return w.writeFiles(ctx, p)
}

// Versions are those of Kubernetes and of Drover, now and after an upgrade.
func (w *Workload) Versions(ctx context.Context) ([]Difference, error) {
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	live, err := w.plane.Find(ctx, w.Config.Cluster.Namespace, w.Config.Cluster.Name)
	if err != nil {
		return nil, err
	}
	plane, err := planeVersion(ctx, w.plane)
	if err != nil {
		return nil, err
	}
	versions := []Difference{{Object: "kubernetes", From: live.Spec.KubernetesVersion, To: w.Config.Cluster.Spec.KubernetesVersion}}
	if live.IsSelfManaged() {
		versions = append(versions, Difference{Object: "drover", From: plane, To: w.version()})
	}
	return versions, nil
}
