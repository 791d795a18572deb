package lifecycle

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/removal"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// verifyApplied is the phase that verifies that Flux has applied the commit of this command, or a
// later one.
func (w *Workload) verifyApplied(ctx context.Context, p *phase.Progress) error {
	reason, err := w.verify(ctx, p, applied)
	return skipFor(reason, err)
}

// verifyRemoved is the phase that verifies that Git no longer has the cluster's files.
func (w *Workload) verifyRemoved(ctx context.Context, p *phase.Progress) error {
	reason, err := w.verify(ctx, p, committed)
	return skipFor(reason, err)
}

// skipFor skips a phase that has a reason for doing nothing.
func skipFor(reason string, err error) error {
	if err == nil && reason != "" {
		return phase.Skip("%s", reason)
	}
	return err
}

// verify waits until the recorded GitChange has reached a stage. If there is nothing to verify, it
// returns the reason.
func (w *Workload) verify(ctx context.Context, p *phase.Progress, want stage) (string, error) {
	record, err := gitRecordOf(p)
	if err != nil {
		return "", err
	}
	if record.Change == "" {
		return cmp.Or(record.Reason, withoutGitOps), nil
	}
	follow := w.followChange(p, record.Change)
	if err := w.plane.Client.Get(ctx, follow.key, &droverv1.GitChange{}); apierrors.IsNotFound(err) {
		return fmt.Sprintf("GitChange %q is done", record.Change), nil // The manager deletes those that are.
	}
	if err := follow.until(ctx, want, w.ControlPlane); err != nil {
		return "", err
	}
	p.Note("%s by commit %s", want, shortCommit(follow.commit))
	return "", nil
}

// removeFromGit removes the cluster's files from Git if its repository is connected, and reports
// whether Flux deletes the cluster then. The cluster may be gone, or may never have existed.
func (w *Workload) removeFromGit(ctx context.Context, p *phase.Progress, live *anywherev1.Cluster) (bool, error) {
	if w.onBootstrap {
		return false, nil // Its files were removed before its objects moved there.
	}
	r, err := w.removalRoute(ctx, p, live)
	if err != nil {
		return false, err
	}
	if !r.isGit() {
		return false, p.Keep(keptGit, gitRecord{Reason: r.Reason})
	}
	if err := w.commit(ctx, p, Delete, r); err != nil || live == nil {
		return false, err
	}
	// Confirmed after the commit: until then, the cluster stays protected from other commits.
	if err := annotate(ctx, w.plane.Client, live, map[string]string{anywherev1.GitRemovalAnnotation: removal.Confirmed}); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return live.Labels[fluxNameLabel] != "", nil
}

// removalRoute decides how the deletion of a cluster reaches the management plane: in the way that
// an unfinished run chose, by the cluster, or by the spec.
func (w *Workload) removalRoute(ctx context.Context, p *phase.Progress, live *anywherev1.Cluster) (route, error) {
	record, err := gitRecordOf(p)
	switch {
	case err != nil:
		return route{}, err
	case record.FluxConfig != "":
		return route{FluxConfig: record.FluxConfig}, nil
	case live != nil:
		return w.routeOf(ctx, p, live)
	}
	return w.routeOf(ctx, p, w.Config.Cluster)
}
