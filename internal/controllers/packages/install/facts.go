package install

import (
	"time"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// scope is one reconcile of one Package.
type scope struct {
	*reconcile.Visit[*packagesv1.Package]
	facts

	// last is the status before this reconcile.
	last *packagesv1.PackageStatus
	// after is when to reconcile again if no event triggers it.
	after time.Duration
}

func newScope(v *reconcile.Visit[*packagesv1.Package]) *scope {
	return &scope{Visit: v, facts: facts{pack: v.Object}, last: v.Object.Status.DeepCopy()}
}

// facts are what the steps of a reconcile observed. The status is computed from them. Steps that
// didn't run leave their facts at the zero value.
type facts struct {
	pack *packagesv1.Package
	// deletingFor is how long ago the Package was deleted, whatever the clock did since.
	deletingFor time.Duration

	// target is nil if it is unknown, and targetErr is the reason.
	target    *packagesv1.PackageTarget
	targetErr error
	// tenant is the namespace of the cluster's owner.
	tenant string
	// foreignNamespace is set if the namespace of packages with the name of the cluster was not
	// created for it.
	foreignNamespace bool

	controller *packagesv1.PackageBundleController
	// bundle is the active bundle, nil if there is none; bundleErr is set if it doesn't exist.
	bundle    *packagesv1.PackageBundle
	bundleErr error
	// found is the version in the bundle; findErr is set if the bundle lacks it.
	found    bundle.Found
	findErr  error
	upgrades []packagesv1.PackageAvailableUpgrade
	// verifyErr is set if the bundle is not trusted, and configErr if the config is invalid.
	verifyErr, configErr error

	// missing are the dependencies that are not installed. dependenciesKnown is set once they were
	// determined.
	missing           []string
	dependenciesKnown bool
	// graphErr is set if the dependencies in the bundle are inconsistent, and dependencyErr if one
	// can't be created.
	graphErr      error
	dependencyErr *dependencyError

	// release is the HelmReleaseProxy as it was read or written, nil if it doesn't exist. foreign
	// is set if one of that name belongs to another owner.
	release *addonsv1.HelmReleaseProxy
	foreign bool
	// wanted is the wanted spec of the release, nil if it is unknown.
	wanted *addonsv1.HelmReleaseProxySpec
	// namespaceUnknown is set until the chart with the default namespace is downloaded, and
	// namespaceErr if the last download failed.
	namespaceUnknown bool
	namespaceErr     error
	// changed is set if the release had another spec when the reconcile started.
	changed bool

	// abandoned is set if the release was left on an unreachable cluster.
	abandoned bool
}

// dependencyError is the reason why a dependency can't be created.
type dependencyError struct {
	name string
	err  error
}

// deleting reports whether the Package is being deleted.
func (f *facts) deleting() bool { return !f.pack.DeletionTimestamp.IsZero() }

// internal reports whether the config of the Package is exempt from validation.
func (f *facts) internal() bool { return f.pack.Annotations[packagesv1.InternalAnnotation] == "true" }
