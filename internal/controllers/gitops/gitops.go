// Package gitops assembles the controllers and the webhooks of clusters whose specs are in Git. It
// contains no logic of its own. Start with Setup.
package gitops

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/drover-dev/drover/internal/controllers/gitops/admission"
	"github.com/drover-dev/drover/internal/controllers/gitops/fleet"
	"github.com/drover-dev/drover/internal/controllers/gitops/repository"
)

// Options configure the controllers and the webhooks.
type Options struct {
	// Enabled starts the controllers, which require the API of Flux. The webhooks are always served,
	// since their kinds are: without the controllers, they deny new objects.
	Enabled bool
	// Metadata caches the metadata of Secrets.
	Metadata ctrlcache.Cache
	// ManagementCluster is the name of this management plane, if it has no Cluster.
	ManagementCluster string
	// Concurrency is the number of concurrent reconciles.
	Concurrency int
}

// Setup adds the controllers and the webhooks to mgr.
func Setup(mgr ctrl.Manager, o Options) error {
	if err := admission.Setup(mgr, admission.Options{Enabled: o.Enabled}); err != nil {
		return fmt.Errorf("adding webhooks of GitOps: %w", err)
	}
	if !o.Enabled {
		return nil
	}
	concurrency := controller.Options{MaxConcurrentReconciles: o.Concurrency}
	reports := fleet.NewReports()
	fleets := &fleet.Controller{
		Client: mgr.GetClient(), Reports: reports, ManagementCluster: o.ManagementCluster,
		Events: mgr.GetEventRecorderFor("drover"), //nolint:staticcheck // Cluster API's reconcilers write events of the same kind
	}
	repositories := &repository.Controller{Client: mgr.GetClient(), Reports: reports, ManagementCluster: o.ManagementCluster}
	for _, part := range []struct {
		name  string
		setup func() error
	}{
		{"fleets", func() error { return fleets.SetupWithManager(mgr, o.Metadata, concurrency) }},
		{"repositories", func() error { return repositories.SetupWithManager(mgr, o.Metadata, concurrency) }},
	} {
		if err := part.setup(); err != nil {
			return fmt.Errorf("adding %s of GitOps: %w", part.name, err)
		}
	}
	return nil
}
