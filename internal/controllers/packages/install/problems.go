package install

import (
	"errors"
	"fmt"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/model/target"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// problem is the reason and message of a condition that is not True.
type problem struct{ reason, message string }

// targetProblem returns why the cluster of the Package is unknown, nil if it isn't.
func targetProblem(f *facts) *problem {
	if f.targetErr == nil {
		return nil
	}
	return &problem{targetReason(f.targetErr), "Target not found: " + f.targetErr.Error()}
}

func targetReason(err error) string {
	switch {
	case errors.Is(err, target.ErrNamespace):
		return packagesv1.NamespaceInvalidReason
	case errors.As(err, new(*target.AmbiguousError)):
		return packagesv1.TargetAmbiguousReason
	case errors.As(err, new(*target.DeniedError)):
		return packagesv1.TargetDeniedReason
	default:
		return packagesv1.TargetUnknownReason
	}
}

// sourceProblem returns why no version of the active bundle can be used, nil if one can.
func sourceProblem(f *facts) *problem {
	switch {
	case f.target != nil && f.controller.Spec.ActiveBundle == "":
		return &problem{packagesv1.NoActiveBundleReason, "no activeBundle set in PackageBundleController"}
	case f.bundleErr != nil:
		return &problem{packagesv1.NoActiveBundleReason, f.bundleErr.Error()}
	case f.findErr != nil:
		return &problem{packagesv1.NotInBundleReason, notInBundle(f)}
	case f.verifyErr != nil:
		return &problem{packagesv1.BundleRefusedReason, fmt.Sprintf("PackageBundle %q cannot be used: %v", f.bundle.Name, f.verifyErr)}
	case f.configErr != nil:
		return &problem{packagesv1.ConfigInvalidReason, text.Truncate(f.configErr.Error())}
	default:
		return nil
	}
}

// notInBundle returns the message that existing tools expect.
func notInBundle(f *facts) string {
	name := f.pack.Spec.PackageName
	if errors.As(f.findErr, new(*bundle.NoVersionError)) {
		name += "@" + f.pack.Spec.PackageVersion
	}
	return fmt.Sprintf("Package %s is not in the active bundle (%s).", name, f.bundle.Name)
}

// dependencyProblem returns why the dependencies can't be installed, nil if they can.
func dependencyProblem(f *facts) *problem {
	switch {
	case f.graphErr != nil:
		return &problem{packagesv1.DependenciesInvalidReason, text.Truncate(invalidBundle(f))}
	case f.dependencyErr != nil:
		message := fmt.Sprintf("Creating Package %q failed: %v", f.dependencyErr.name, f.dependencyErr.err)
		return &problem{packagesv1.DependenciesInvalidReason, text.Truncate(message)}
	default:
		return nil
	}
}

// invalidBundle returns the message that existing tools expect, with the cause.
func invalidBundle(f *facts) string {
	message := fmt.Sprintf("invalid package bundle. (%s@%s bundle: %s)", f.found.Package.Name, f.found.Version.Name, f.bundle.Name)
	if errors.As(f.graphErr, new(*bundle.CycleError)) {
		return message + ": " + f.graphErr.Error()
	}
	return message
}

// releaseProblem returns why the release can't be written, nil if it can.
func releaseProblem(f *facts) *problem {
	switch {
	case f.foreign:
		return &problem{packagesv1.InstallFailedReason, fmt.Sprintf("HelmReleaseProxy %q exists and belongs to another owner", f.pack.Name)}
	case f.namespaceErr != nil:
		return &problem{packagesv1.InstallFailedReason, text.Truncate(f.namespaceErr.Error())}
	case f.namespaceUnknown:
		return &problem{packagesv1.InstallingReason, "Downloading the chart of version " + f.found.Version.Name}
	case f.changed && len(f.missing) == 0 && f.release != nil && !f.release.DeletionTimestamp.IsZero():
		return &problem{packagesv1.InstallingReason, fmt.Sprintf("Waiting for the deletion of HelmReleaseProxy %q", f.release.Name)}
	default:
		return nil
	}
}
