package bundle

import (
	"fmt"

	"github.com/Masterminds/semver/v3"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/version"
)

// UpgradeRequiredError says that a bundle needs a later Drover.
type UpgradeRequiredError struct{ Bundle, Needs, Have string }

func (e *UpgradeRequiredError) Error() string {
	return fmt.Sprintf("bundle %s needs Drover %s, and this is %s", e.Bundle, e.Needs, e.Have)
}

// CheckVersion tells whether a Drover of some version can use a bundle. A development version can use them all.
func CheckVersion(b *packagesv1.PackageBundle, drover string) error {
	needs := b.Spec.MinVersion
	if needs == "" || drover == "" || version.Development(drover) {
		return nil
	}
	wanted, err := semver.NewVersion(needs)
	if err != nil {
		return fmt.Errorf("bundle %s has minControllerVersion %q, which is not like v1.2.3", b.Name, needs)
	}
	have, err := semver.NewVersion(drover)
	if err != nil {
		return fmt.Errorf("the version of this Drover, %q, is not like v1.2.3", drover)
	}
	if have.LessThan(wanted) {
		return &UpgradeRequiredError{Bundle: b.Name, Needs: needs, Have: drover}
	}
	return nil
}
