package bundle

import (
	"fmt"
	"strings"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// Found is one version of a package. It points into the bundle.
type Found struct {
	Package *packagesv1.BundlePackage
	Version *packagesv1.SourceVersion
	// Latest is set if no specific version was requested.
	Latest bool
}

// NotInBundleError is returned for a package that a bundle doesn't contain.
type NotInBundleError struct{ Bundle, Package string }

func (e *NotInBundleError) Error() string {
	return fmt.Sprintf("package not found in bundle (%s): %s", e.Bundle, e.Package)
}

// NoVersionError is returned for a version that a package of a bundle doesn't have.
type NoVersionError struct{ Bundle, Package, Version string }

func (e *NoVersionError) Error() string {
	return fmt.Sprintf("package version not found in bundle (%s): %s @ %s", e.Bundle, e.Package, e.Version)
}

// Find returns a version of a package. It ignores the case of the name; the version is a name or a
// digest, and defaults to the latest, which is the first. The error is a *NotInBundleError or a
// *NoVersionError.
func Find(b *packagesv1.PackageBundle, name, version string) (Found, error) {
	found := lookUp(b, name)
	if found == nil {
		return Found{}, &NotInBundleError{Bundle: b.Name, Package: name}
	}
	versions := found.Source.Versions
	if version == "" || version == packagesv1.LatestVersion {
		if len(versions) == 0 {
			return Found{}, &NoVersionError{Bundle: b.Name, Package: name, Version: packagesv1.LatestVersion}
		}
		return Found{Package: found, Version: &versions[0], Latest: true}, nil
	}
	for i := range versions {
		if versions[i].Name == version || versions[i].Digest == version {
			return Found{Package: found, Version: &versions[i]}, nil
		}
	}
	return Found{}, &NoVersionError{Bundle: b.Name, Package: name, Version: version}
}

func lookUp(b *packagesv1.PackageBundle, name string) *packagesv1.BundlePackage {
	for i := range b.Spec.Packages {
		if strings.EqualFold(b.Spec.Packages[i].Name, name) {
			return &b.Spec.Packages[i]
		}
	}
	return nil
}
