package admission

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/requester"
	"github.com/drover-dev/drover/internal/model/lockstep"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/model/target"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// packageRules validates Packages.
type packageRules struct {
	Options

	reader client.Reader
	users  *requester.Reviewer
}

// ValidateCreate checks a Package against the active bundle.
func (r *packageRules) ValidateCreate(ctx context.Context, p *packagesv1.Package) (admission.Warnings, error) {
	if err := checkStage(p); err != nil {
		return nil, invalid(p.Name, err)
	}
	return r.validate(ctx, &packagesv1.Package{}, p)
}

// checkStage rejects an unknown stage of Kubernetes upgrades.
func checkStage(p *packagesv1.Package) error {
	value, ok := p.Annotations[addonsv1.UpgradeStageAnnotation]
	if _, known := lockstep.ParseStage(value); !ok || known {
		return nil
	}
	return fmt.Errorf("annotation %s has the unknown value %q; use BeforeControlPlane, BeforeWorkers, AfterWorkers or None", addonsv1.UpgradeStageAnnotation, value)
}

// ValidateUpdate checks a changed spec against the active bundle.
func (r *packageRules) ValidateUpdate(ctx context.Context, was, is *packagesv1.Package) (admission.Warnings, error) {
	before, had := was.Annotations[addonsv1.UpgradeStageAnnotation]
	if after, has := is.Annotations[addonsv1.UpgradeStageAnnotation]; after != before || has != had {
		if err := checkStage(is); err != nil {
			return nil, invalid(is.Name, err)
		}
	}
	if reflect.DeepEqual(was.Spec, is.Spec) && (isInternal(was) || !isInternal(is)) {
		return nil, nil
	}
	return r.validate(ctx, was, is)
}

// ValidateDelete accepts all deletions.
func (r *packageRules) ValidateDelete(ctx context.Context, _ *packagesv1.Package) (admission.Warnings, error) {
	return ignored(ctx)
}

func (r *packageRules) validate(ctx context.Context, was, is *packagesv1.Package) (admission.Warnings, error) {
	if err := r.Policy.RequireAccount(ctx, is.Namespace, is.Spec.ServiceAccountName); err != nil {
		return nil, invalid(is.Name, err)
	}
	if isInternal(is) {
		return nil, r.checkInternal(ctx)
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

func isInternal(p *packagesv1.Package) bool {
	return p.Annotations[packagesv1.InternalAnnotation] == "true"
}

// checkInternal rejects an internal Package, which is exempt from validation, unless an
// administrator creates it, changes it, or makes it internal.
func (r *packageRules) checkInternal(ctx context.Context) error {
	administrator, err := r.users.IsAdministrator(ctx, packagesv1.GroupVersion.WithResource("packages").GroupResource())
	if err != nil {
		return internalError(err.Error())
	}
	if !administrator {
		return rejection("only administrators may create or change a package with the annotation " + packagesv1.InternalAnnotation + "; remove it")
	}
	return nil
}

// notYetError is returned if a Package can't be validated because its bundle may be created later.
// Its conditions report problems then.
type notYetError struct{ error }

// active returns the cluster of a Package and its active bundle.
func (r *packageRules) active(ctx context.Context, p *packagesv1.Package) (string, *packagesv1.PackageBundle, error) {
	var failed error
	controllers := map[string]*packagesv1.PackageBundleController{}
	t, err := target.Of(client.ObjectKeyFromObject(p), func(cluster string) (string, bool) {
		found := &packagesv1.PackageBundleController{}
		err := r.reader.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: cluster}, found)
		failed = errors.Join(failed, client.IgnoreNotFound(err))
		controllers[cluster] = found
		return owner.Users(found), err == nil
	})
	controller := controllers[t.Cluster]
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
