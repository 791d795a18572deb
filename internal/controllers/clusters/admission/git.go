package admission

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/removal"
	"github.com/drover-dev/drover/internal/model/spec"
)

// confirmedRemoval keeps Flux from deleting a Cluster that is in use before somebody confirms that.
// Flux prunes as soon as it sees a commit, so only admission comes before it. Flux tries again what
// was rejected.
func confirmedRemoval(ctx context.Context, c *anywherev1.Cluster) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	if !removal.IsFlux(request.UserInfo.Username) || !removal.Waits(c) {
		return nil
	}
	return rejection("%s", removal.Message(c))
}

// confirmedRemovalOf does the same for a config that such a Cluster references.
func confirmedRemovalOf(ctx context.Context, reader client.Reader, config client.Object) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil || !removal.IsFlux(request.UserInfo.Username) {
		return err
	}
	clusters := &anywherev1.ClusterList{}
	if err := reader.List(ctx, clusters, client.InNamespace(config.GetNamespace())); err != nil {
		return fmt.Errorf("listing clusters that reference %s %q: %w", request.Kind.Kind, config.GetName(), err)
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		if removal.Waits(c) && slices.Contains(spec.References(c), anywherev1.Ref{Kind: request.Kind.Kind, Name: config.GetName()}) {
			return rejection("%s %q is referenced. %s", request.Kind.Kind, config.GetName(), removal.Message(c))
		}
	}
	return nil
}
