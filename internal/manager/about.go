package manager

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/install/about"
	"github.com/drover-dev/drover/internal/registry/bundle/shipped"
)

// addAbout records the running version on the management plane.
func addAbout(_ context.Context, mgr ctrl.Manager) error {
	runs := about.Plane{Version: version.Get().Version}
	for _, minor := range version.Minors() {
		release, err := version.ForMinor(minor)
		if err != nil {
			return err
		}
		runs.Kubernetes = append(runs.Kubernetes, release)
	}
	var err error
	if runs.Bundles, err = shipped.Names(); err != nil {
		return err
	}
	keeper := &about.Keeper{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Plane: runs}
	return keeper.SetupWithManager(mgr, reconcile.WithQueue(controller.Options{}))
}
