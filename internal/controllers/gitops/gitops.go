// Package gitops assembles the controllers and the webhooks of clusters whose specs are in Git. It
// contains no logic of its own. Start with Setup.
package gitops

import (
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/drover-dev/drover/internal/controllers/gitops/admission"
	"github.com/drover-dev/drover/internal/controllers/gitops/change"
	"github.com/drover-dev/drover/internal/controllers/gitops/commitstatus"
	"github.com/drover-dev/drover/internal/controllers/gitops/connection"
	"github.com/drover-dev/drover/internal/controllers/gitops/fleet"
	"github.com/drover-dev/drover/internal/controllers/gitops/repository"
	"github.com/drover-dev/drover/internal/model/addons/sources"
)

// Options configure the controllers and the webhooks.
type Options struct {
	// Enabled starts the controllers, which require the API of Flux. The webhooks are always served,
	// since their kinds are: without the controllers, they deny new objects.
	Enabled bool
	// Metadata caches the metadata of Secrets.
	Metadata ctrlcache.Cache
	// FluxNamespace is the namespace of Flux and of the credentials of the repository.
	FluxNamespace string
	// ManagementCluster is the name of this management plane, if it has no Cluster.
	ManagementCluster string
	// Concurrency is the number of concurrent reconciles.
	Concurrency int
}

// part is a controller or the webhooks.
type part struct {
	name  string
	setup func() error
}

// Setup adds the controllers and the webhooks to mgr.
func Setup(mgr ctrl.Manager, o Options) error {
	parts := []part{{"webhooks", func() error { return admission.Setup(mgr, admission.Options{Enabled: o.Enabled}) }}}
	if o.Enabled {
		controllers, err := o.controllers(mgr)
		if err != nil {
			return fmt.Errorf("adding controllers of GitOps: %w", err)
		}
		parts = append(parts, controllers...)
	}
	for _, p := range parts {
		if err := p.setup(); err != nil {
			return fmt.Errorf("adding %s of GitOps: %w", p.name, err)
		}
	}
	return nil
}

func (o Options) controllers(mgr ctrl.Manager) ([]part, error) {
	changes := &change.Controller{
		Client: mgr.GetClient(), Secrets: sources.New(o.Metadata, mgr.GetAPIReader()),
		FluxNamespace: o.FluxNamespace, ManagementCluster: o.ManagementCluster, Clock: clock.RealClock{},
	}
	support, err := fleet.NewProbe(mgr.GetClient(), mgr.GetRESTMapper())
	if err != nil {
		return nil, err
	}
	changes.Support = support
	plane, reports := connection.Plane{FluxNamespace: o.FluxNamespace, ManagementCluster: o.ManagementCluster}, fleet.NewReports()
	fleets := &fleet.Controller{
		Client: mgr.GetClient(), Reports: reports, Plane: plane, Support: support,
		Events: mgr.GetEventRecorderFor("drover"), //nolint:staticcheck // Cluster API's reconcilers write events of the same kind
	}
	repositories := &repository.Controller{Client: mgr.GetClient(), Reports: reports, Plane: plane, Support: support}
	statuses := &commitstatus.Controller{
		Client: mgr.GetClient(), Secrets: changes.Secrets, ManagementCluster: o.ManagementCluster, Events: fleets.Events,
	}
	concurrency := controller.Options{MaxConcurrentReconciles: o.Concurrency}
	return []part{
		{"GitChange", func() error { return changes.SetupWithManager(mgr, o.Metadata, concurrency) }},
		{"FluxConfig", func() error { return repositories.SetupWithManager(mgr, o.Metadata, concurrency) }},
		{"commit statuses", func() error { return statuses.SetupWithManager(mgr, o.Metadata, concurrency) }},
		{"GitRepository", func() error { return fleets.SetupWithManager(mgr, o.Metadata, concurrency) }},
	}, nil
}
