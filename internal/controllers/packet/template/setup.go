package template

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"sigs.k8s.io/cluster-api/util/predicates"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

const name = "packetmachinetemplate"

// SetupWithManager adds the controller to mgr. It watches templates; Cluster API makes the cluster
// that uses a template its owner, which is an event.
func (c *Controller) SetupWithManager(mgr ctrl.Manager, o controller.Options) error {
	log := mgr.GetLogger().WithValues("controller", name)
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&infrav1.PacketMachineTemplate{}, builder.WithPredicates(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, c.WatchFilter))).
		WithOptions(reconcile.NewGuard(mgr, "PacketMachineTemplate").Options(o)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("creating controller %q: %w", name, err)
	}
	return nil
}
