package admission

import (
	"context"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// bundleRules validates PackageBundles.
type bundleRules struct{ Options }

// ValidateCreate checks the name and the signature.
func (r *bundleRules) ValidateCreate(_ context.Context, b *packagesv1.PackageBundle) (admission.Warnings, error) {
	if _, err := bundle.ParseName(b.Name); err != nil {
		return nil, invalid(b.Name, err)
	}
	if err := bundle.Verify(b, r.Keys); err != nil {
		return nil, invalid(b.Name, err)
	}
	return nil, nil
}

// ValidateUpdate checks changes of the signed content. Other changes are accepted even if the key
// is no longer trusted, so that the bundle can be deleted.
func (r *bundleRules) ValidateUpdate(ctx context.Context, was, is *packagesv1.PackageBundle) (admission.Warnings, error) {
	if reflect.DeepEqual(was.Spec, is.Spec) && signature(was) == signature(is) {
		return nil, nil
	}
	return r.ValidateCreate(ctx, is)
}

func signature(b *packagesv1.PackageBundle) [3]string {
	a := b.Annotations
	return [3]string{a[packagesv1.SignatureAnnotation], a[packagesv1.ExcludesAnnotation], a[packagesv1.IncludesAnnotation]}
}

// ValidateDelete accepts all deletions.
func (r *bundleRules) ValidateDelete(ctx context.Context, _ *packagesv1.PackageBundle) (admission.Warnings, error) {
	return ignored(ctx)
}
