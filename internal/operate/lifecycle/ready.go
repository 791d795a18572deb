package lifecycle

import (
	"context"
	"errors"
	"io/fs"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// Ready reports whether the cluster is ready, so that its deletion requires a confirmation. It
// returns an error if a ready cluster can't be deleted, and changes nothing.
func (w *Workload) Ready(ctx context.Context) (bool, error) {
	if err := w.connect(ctx); err != nil {
		return false, err
	}
	return w.ready(ctx, w.checkVersions, w.checkDeletable)
}

// ready runs the checks if the cluster is ready.
func (w *Workload) ready(ctx context.Context, checks ...check) (bool, error) {
	live, err := w.plane.Find(ctx, w.Config.Cluster.Namespace, w.Config.Cluster.Name)
	var none *inspect.NotFoundError
	switch {
	case errors.As(err, &none):
		return false, nil
	case err != nil:
		return false, err
	case !live.DeletionTimestamp.IsZero() || !apimeta.IsStatusConditionTrue(live.Status.Conditions, anywherev1.Ready):
		return false, nil
	}
	if err := preflight(ctx, nil, checks...); err != nil {
		return false, err
	}
	return true, nil
}

// Ready reports whether the cluster is ready, so that its deletion requires a confirmation. One
// whose objects are on a bootstrap plane is being changed and is not. It returns an error if a
// ready cluster can't be deleted, and changes nothing.
func (m *Management) Ready(ctx context.Context) (bool, error) {
	w, err := m.onItself(ctx)
	if err != nil && (m.hasBootstrap() || errors.Is(err, fs.ErrNotExist)) {
		return false, nil // The deletion itself finds out where the objects are.
	}
	if err != nil {
		return false, err
	}
	return w.ready(ctx, w.checkVersions, func(ctx context.Context, _ *phase.Progress) []error { return m.checkWorkloads(ctx, w) })
}
