package release

import (
	"context"
	"errors"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/addons/tool"
)

// Wanted is what a HelmReleaseProxy asks for, with the values and credentials that it refers to. Which version that is now is for the
// caller to resolve.
func Wanted(ctx context.Context, sources *Sources, r *addonsv1.HelmReleaseProxy) (tool.Want, error) {
	v := &visit{Controller: &Controller{Values: sources}, release: r}
	want, problem := v.wanted(ctx)
	if problem != nil {
		return want, errors.New(problem.message)
	}
	return want, nil
}

// wanted is everything but the version that was resolved.
func (v *visit) wanted(ctx context.Context) (tool.Want, *problem) {
	spec := v.release.Spec.DeepCopy() // an operation outlives the reconcile that starts it
	want := tool.Want{ID: v.id(), Options: spec.Options, Health: spec.Health}
	if spec.Drift != nil {
		want.Ignore = spec.Drift.Ignore
	}
	var p *problem
	if want.Package, p = v.reference(ctx); p != nil {
		return want, p
	}
	want.Values, p = v.values(ctx)
	return want, p
}
