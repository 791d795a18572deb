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
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// Upgrade plans the upgrade of a workload cluster to a new spec.
func (w *Workload) Upgrade() (*phase.Plan, error) {
	preferFluxConfig(w.Config)
	return w.plan(Upgrade, w.Config, []phase.Phase{
		{Name: SetupAndValidate, Summary: summaryValidate, Repeat: true, Run: w.setupUpgrade},
		{Name: PauseEksAAndFluxReconcile, Summary: "Pause reconciliation while several objects change", Run: w.connected(w.pause)},
		{Name: UpgradeWorkloadCluster, Summary: "Upgrade the cluster to the new spec", Run: w.connected(w.upgrade), Changes: changeLines(w.differences)},
		{Name: UpdateClusterAndGitResources, Summary: "Verify that Flux has applied the new spec, with GitOps, and write it to a file", Run: w.connected(w.recordSpec), Changes: []string{"writes " + w.files().Spec()}},
		{Name: ResumeFluxReconcile, Summary: "Resume Flux reconciliation of the cluster's objects", Run: w.connected(w.resume)},
	})
}

// Differences returns the fields that an upgrade would change. It changes nothing.
func (w *Workload) Differences(ctx context.Context) ([]Difference, error) {
	if err := spec.Validate(w.Config).Err(); err != nil {
		return nil, err
	}
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	became, problems := w.dryRun(ctx, nil)
	if len(problems) > 0 {
		return nil, &PreflightError{Problems: problems}
	}
	err := w.compare(ctx, became)
	return w.differences, err
}

func (w *Workload) setupUpgrade(ctx context.Context, p *phase.Progress) error {
	if err := checkSpec(w.Config, p); err != nil {
		return err
	}
	if err := w.connect(ctx); err != nil {
		return err
	}
	if err := preflight(ctx, p, w.checkVersions, w.checkOffered, w.checkUpgradable, w.checkReverted); err != nil {
		return err
	}
	return preflight(ctx, p, w.checkChange, w.checkGrowth)
}

// checkUpgradable finds the cluster, and rejects the upgrade of one that may not change.
func (w *Workload) checkUpgradable(ctx context.Context, p *phase.Progress) []error {
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
	// A move resumes what it paused.
	if live.IsPaused() && !ours && live.Annotations[bootstrap.PausedForMove] == "" {
		return []error{fmt.Errorf("cluster %q is paused: find out why, then remove the annotation %s", live.Name, anywherev1.PausedAnnotation)}
	}
	if tree, err := w.plane.Tree(ctx, live); err == nil {
		if answer := inspect.Why(tree, time.Now()); !answer.Ready && !p.Resumed() {
			p.Note("the cluster is not ready: %s", answer.Deepest())
		}
	}
	if err := spec.ValidateUpdate(live, w.Config.Cluster).Err(); err != nil {
		return []error{err}
	}
	return nil
}

// checkChange submits the new spec as a dry run, and keeps what it changes.
func (w *Workload) checkChange(ctx context.Context, p *phase.Progress) []error {
	became, problems := w.dryRun(ctx, p)
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

// compare computes the differences between the live objects and what they would become.
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

// changedObjects returns how many objects an upgrade changes.
func (w *Workload) changedObjects() int {
	var names []string
	for _, d := range w.differences {
		names = append(names, d.Object)
	}
	slices.Sort(names)
	return len(slices.Compact(names))
}

// upgrade submits the new spec and waits until the cluster has reached it.
func (w *Workload) upgrade(ctx context.Context, p *phase.Progress) error {
	r, err := w.connectGit(ctx, p)
	if err != nil {
		return err
	}
	// A cluster that is up to date may be missing in Git.
	if len(w.differences) == 0 && !r.isGit() {
		live, err := w.live(ctx)
		if err != nil {
			return err
		}
		if !live.IsPaused() && w.follow(p, upgrading).reached(ctx, live) {
			return phase.Skip("the cluster is up to date")
		}
	}
	if err := w.submit(ctx, p, Upgrade, r); err != nil {
		return err
	}
	if err := w.unpause(ctx, p); err != nil {
		return err
	}
	return w.follow(p, upgrading).untilReady(ctx, w.Limits)
}

// recordSpec verifies that Flux has applied the new spec, and writes the cluster's files.
func (w *Workload) recordSpec(ctx context.Context, p *phase.Progress) error {
	reason, err := w.verify(ctx, p, applied)
	if err != nil {
		return err
	}
	if reason != "" && w.Config.Cluster.Spec.GitOpsRef != nil {
		p.Note("%s", reason)
	}
	return w.writeFiles(ctx, p)
}

// Versions returns the versions of Kubernetes and Drover before and after an upgrade.
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
