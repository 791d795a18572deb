package admission

import (
	"context"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// bundleRules are those for PackageBundles.
type bundleRules struct{ Options }

// ValidateCreate checks a new object.
func (r *bundleRules) ValidateCreate(_ context.Context, b *packagesv1.PackageBundle) (admission.Warnings, error) {
	if _, err := bundle.ParseName(b.Name); err != nil {
		return nil, failed(b.Name, err)
	}
	if err := bundle.Verify(b, r.Keys); err != nil {
		return nil, failed(b.Name, err)
	}
	return nil, nil
}

// ValidateUpdate checks a changed object, unless nothing has changed that a signature is about. A key that is trusted no longer makes a bundle
// useless, and must not make it stay.
func (r *bundleRules) ValidateUpdate(ctx context.Context, was, is *packagesv1.PackageBundle) (admission.Warnings, error) {
	if reflect.DeepEqual(was.Spec, is.Spec) && signedWith(was) == signedWith(is) {
		return nil, nil
	}
	return r.ValidateCreate(ctx, is)
}

func signedWith(b *packagesv1.PackageBundle) [3]string {
	a := b.Annotations
	return [3]string{a[packagesv1.SignatureAnnotation], a[packagesv1.ExcludesAnnotation], a[packagesv1.IncludesAnnotation]}
}

// ValidateDelete refuses nothing.
func (r *bundleRules) ValidateDelete(ctx context.Context, _ *packagesv1.PackageBundle) (admission.Warnings, error) {
	return ignored(ctx)
}
