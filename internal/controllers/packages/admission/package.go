package admission

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/target"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// packageRules validates Packages.
type packageRules struct {
	Options

	reader client.Reader
}

// ValidateCreate checks a Package against the active bundle.
func (r *packageRules) ValidateCreate(ctx context.Context, p *packagesv1.Package) (admission.Warnings, error) {
	return r.validate(ctx, &packagesv1.Package{}, p)
}

// ValidateUpdate checks a changed spec against the active bundle.
func (r *packageRules) ValidateUpdate(ctx context.Context, was, is *packagesv1.Package) (admission.Warnings, error) {
	if reflect.DeepEqual(was.Spec, is.Spec) {
		return nil, nil
	}
	return r.validate(ctx, was, is)
}

// ValidateDelete accepts all deletions.
func (r *packageRules) ValidateDelete(ctx context.Context, _ *packagesv1.Package) (admission.Warnings, error) {
	return ignored(ctx)
}

func (r *packageRules) validate(ctx context.Context, was, is *packagesv1.Package) (admission.Warnings, error) {
	if is.Annotations[packagesv1.InternalAnnotation] == "true" {
		return nil, nil
	}
	cluster, b, err := r.active(ctx, is)
	if errors.As(err, new(*notYetError)) {
		if err := immutable(was, is); err != nil {
			return nil, invalid(is.Name, err)
		}
		return admission.Warnings{"getting PackageBundle: " + err.Error()}, nil
	}
	if err != nil {
		return nil, internalError("getting PackageBundle: " + err.Error())
	}
	if err := r.check(was, is, b, cluster); err != nil {
		return nil, invalid(is.Name, err)
	}
	return nil, nil
}

// notYetError is returned if a Package can't be validated because its bundle may be created later.
// Its conditions report problems then.
type notYetError struct{ error }

// active returns the cluster of a Package and its active bundle.
func (r *packageRules) active(ctx context.Context, p *packagesv1.Package) (string, *packagesv1.PackageBundle, error) {
	var failed error
	controller := &packagesv1.PackageBundleController{}
	t, err := target.Of(client.ObjectKeyFromObject(p), func(cluster string) bool {
		err := r.reader.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: cluster}, controller)
		failed = errors.Join(failed, client.IgnoreNotFound(err))
		return err == nil
	})
	switch {
	case failed != nil:
		return "", nil, failed
	case err != nil:
		return "", nil, &notYetError{err}
	case controller.Spec.ActiveBundle == "":
		return "", nil, &notYetError{errors.New("no activeBundle set in PackageBundleController")}
	}
	b := &packagesv1.PackageBundle{}
	err = r.reader.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: controller.Spec.ActiveBundle}, b)
	if apierrors.IsNotFound(err) {
		err = &notYetError{err}
	}
	return t.Cluster, b, err
}

// check applies all rules, in the order of the original controller.
func (r *packageRules) check(was, is *packagesv1.Package, b *packagesv1.PackageBundle, cluster string) error {
	found, err := bundle.Find(b, is.Spec.PackageName, is.Spec.PackageVersion)
	if errors.As(err, new(*bundle.NoVersionError)) {
		return fmt.Errorf("package version not found in bundle (%s): %s @ %s", b.Name, is.Spec.PackageName, is.Spec.PackageVersion)
	}
	if err != nil {
		return fmt.Errorf("package not found in bundle (%s): %s", b.Name, is.Spec.PackageName)
	}
	if found.Package.WorkloadOnly && cluster == r.ManagementCluster {
		return fmt.Errorf("package %s should only be installed on a workload cluster", is.Name)
	}
	if _, err := bundle.Schema(found.Version); err != nil {
		return err
	}
	if _, err := bundle.ParseConfig(is.Spec.Config); err != nil {
		return err
	}
	if err := immutable(was, is); err != nil {
		return err
	}
	if err := bundle.ValidateConfig(found.Version, is.Spec.Config); err != nil {
		return err
	}
	_, err = bundle.Dependencies(b, found)
	if errors.As(err, new(*bundle.CycleError)) {
		return err
	}
	return nil
}

// immutable rejects a change of the namespace. Setting the namespace that the chart chose is
// accepted.
func immutable(was, is *packagesv1.Package) error {
	wanted := is.Spec.TargetNamespace
	in := was.Status.Spec.TargetNamespace
	if t := was.Status.Target; t != nil {
		in = t.Namespace
	}
	if in == "" || wanted == in || wanted == "" && was.Spec.TargetNamespace == "" {
		return nil
	}
	return fmt.Errorf("package %s targetNamespace is immutable", is.Name)
}
