// Package gitops assembles the controllers and the webhooks of clusters whose specs are in Git. It
// contains no logic of its own. Start with Setup.
package gitops

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/drover-dev/drover/internal/controllers/gitops/admission"
)

// Options configure the controllers and the webhooks.
type Options struct {
	// Enabled starts the controllers, which require the API of Flux. The webhooks are always served,
	// since their kinds are: without the controllers, they deny new objects.
	Enabled bool
}

// Setup adds the controllers and the webhooks to mgr.
func Setup(mgr ctrl.Manager, o Options) error {
	if err := admission.Setup(mgr, admission.Options{Enabled: o.Enabled}); err != nil {
		return fmt.Errorf("adding webhooks of GitOps: %w", err)
	}
	return nil
}
