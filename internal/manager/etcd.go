package manager

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/drover-dev/drover/internal/controllers/capi"
	"github.com/drover-dev/drover/internal/controllers/etcd/schedule"
	"github.com/drover-dev/drover/internal/workload/etcd/backup"
)

// addSnapshots adds the controller that saves snapshots of etcd. It reads the Secrets of clusters
// from the API server: most of them are not cached.
func (o Options) addSnapshots(ctx context.Context, mgr ctrl.Manager, shared capi.Shared) error {
	c := &schedule.Controller{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), API: shared.Workloads.GetRESTConfig, Save: backup.Save,
		Events: mgr.GetEventRecorderFor("drover"), //nolint:staticcheck // Cluster API's reconcilers write events of the same kind
		Clock:  clock.RealClock{}, Temporary: o.temporarySnapshots(), WatchFilter: o.WatchFilter,
	}
	return c.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: o.Concurrency})
}

// temporarySnapshots returns a directory beside the cache of charts, which is on a disk: temporary
// files of a manager in a cluster are in memory. Several managers may share it. It is the system's,
// the empty string, if that one can't be used.
func (o Options) temporarySnapshots() string {
	if o.ChartCache == "" {
		return ""
	}
	dir := filepath.Join(filepath.Dir(o.ChartCache), "unsent-snapshots")
	if err := errors.Join(os.MkdirAll(dir, 0o700), removeOld(dir)); err != nil {
		return ""
	}
	return dir
}

// removeOld removes what managers that were killed have left: no snapshot takes a day.
func removeOld(dir string) error {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if info, unknown := f.Info(); unknown == nil && time.Since(info.ModTime()) > 24*time.Hour {
			err = errors.Join(err, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	return err
}
