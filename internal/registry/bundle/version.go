package bundle

import (
	"fmt"

	"github.com/Masterminds/semver/v3"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/version"
)

// UpgradeRequiredError is returned for a bundle that requires a newer Drover.
type UpgradeRequiredError struct{ Bundle, Needs, Have string }

func (e *UpgradeRequiredError) Error() string {
	return fmt.Sprintf("bundle %s requires Drover %s; this is %s", e.Bundle, e.Needs, e.Have)
}

// CheckVersion verifies that a version of Drover can use a bundle. Development versions can use all
// bundles.
func CheckVersion(b *packagesv1.PackageBundle, drover string) error {
	needs := b.Spec.MinVersion
	if needs == "" || drover == "" || version.Development(drover) {
		return nil
	}
	wanted, err := semver.NewVersion(needs)
	if err != nil {
		return fmt.Errorf("invalid minControllerVersion %q in bundle %s: want a version such as v1.2.3", needs, b.Name)
	}
	have, err := semver.NewVersion(drover)
	if err != nil {
		return fmt.Errorf("invalid version of Drover %q: want a version such as v1.2.3", drover)
	}
	if have.LessThan(wanted) {
		return &UpgradeRequiredError{Bundle: b.Name, Needs: needs, Have: drover}
	}
	return nil
}
