package admission

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/packages/bundle"
)

// controllerRules are those for PackageBundleControllers. They never ask the cluster: one that does not answer must not keep anybody from
// changing what it is told.
type controllerRules struct{}

// ValidateCreate checks a new object.
func (r *controllerRules) ValidateCreate(_ context.Context, c *packagesv1.PackageBundleController) (admission.Warnings, error) {
	return nil, check(c, c.Status.KubernetesVersion)
}

// ValidateUpdate checks a changed object, if another bundle is to be active.
func (r *controllerRules) ValidateUpdate(_ context.Context, was, is *packagesv1.PackageBundleController) (admission.Warnings, error) {
	if was.Spec.ActiveBundle == is.Spec.ActiveBundle {
		return nil, nil
	}
	return nil, check(is, was.Status.KubernetesVersion)
}

// ValidateDelete refuses nothing.
func (r *controllerRules) ValidateDelete(ctx context.Context, _ *packagesv1.PackageBundleController) (admission.Warnings, error) {
	return ignored(ctx)
}

// check looks at the name of the active bundle. One that is not here is downloaded, if it can be one. Which Kubernetes the cluster has is
// known if it answered before.
func check(c *packagesv1.PackageBundleController, kubernetes string) error {
	active := c.Spec.ActiveBundle
	if active == "" {
		return nil
	}
	name, err := bundle.ParseName(active)
	if err != nil {
		return refusal(fmt.Sprintf("activeBundle %q not present on cluster", active))
	}
	if kubernetes != "" && name.Kubernetes() != kubernetes {
		return refusal(fmt.Sprintf("kuberneetes version v%s does not match %s", strings.ReplaceAll(kubernetes, ".", "-"), active))
	}
	return nil
}
