package release

import (
	"context"
	"errors"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/workload/tool"
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
	want, p := v.outline(ctx)
	if p != nil {
		return want, p
	}
	documents, p := v.documents(ctx)
	if p != nil {
		return want, p
	}
	want.Values, p = parse(documents)
	return want, p
}

// outline is what is wanted without its values. It shares what it refers to with the object.
func (v *visit) outline(ctx context.Context) (tool.Want, *problem) {
	spec := &v.release.Spec
	want := tool.Want{ID: v.id(), Options: spec.Options, Health: spec.Health}
	if spec.Drift != nil {
		want.Ignore = spec.Drift.Ignore
	}
	var p *problem
	want.Package, p = v.reference(ctx)
	return want, p
}

// complete is what is wanted of an operation: it has values, and shares nothing with the object, which it outlives.
func (f *facts) complete() (tool.Want, error) {
	if p := f.readValues(); p != nil {
		return tool.Want{}, errors.New(p.message)
	}
	want, spec := f.want, f.spec.DeepCopy()
	want.Options = spec.Options
	if want.Health != nil {
		want.Health = spec.Health
	}
	if want.Ignore != nil {
		want.Ignore = spec.Drift.Ignore
	}
	return want, nil
}
