package bundle

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// UpgradeRequiredError says that a bundle needs a later Drover.
type UpgradeRequiredError struct{ Bundle, Needs, Have string }

func (e *UpgradeRequiredError) Error() string {
	return fmt.Sprintf("bundle %s needs Drover %s, and this is %s", e.Bundle, e.Needs, e.Have)
}

// sinceRelease is what git adds to the last release for a commit after it, which for semver would be one before it.
var sinceRelease = regexp.MustCompile(`-\d+-g[0-9a-f]+(-dirty)?$`)

// CheckVersion tells whether a Drover of some version can use a bundle. A development version can use them all.
func CheckVersion(b *packagesv1.PackageBundle, drover string) error {
	needs := b.Spec.MinVersion
	if needs == "" || development(drover) {
		return nil
	}
	wanted, err := semver.NewVersion(needs)
	if err != nil {
		return fmt.Errorf("bundle %s has minControllerVersion %q, which is not like v1.2.3", b.Name, needs)
	}
	have, err := semver.NewVersion(sinceRelease.ReplaceAllString(drover, ""))
	if err != nil {
		return fmt.Errorf("the version of this Drover, %q, is not like v1.2.3", drover)
	}
	if have.LessThan(wanted) {
		return &UpgradeRequiredError{Bundle: b.Name, Needs: needs, Have: drover}
	}
	return nil
}

func development(drover string) bool {
	return drover == "" || drover == "development" || strings.HasPrefix(drover, "v0.0.0-")
}
