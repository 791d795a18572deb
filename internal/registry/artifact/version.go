package artifact

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// isExact tells versions from ranges: 1.2.3 and v1.2.3-rc.1 are versions, 1.2 is any 1.2.x.
func isExact(version string) bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	return err == nil
}

func isDigest(version string) bool { return strings.HasPrefix(version, digestPrefix) }

// isFinal says that a version stands for the same for good. Tags that are no versions, latest for one, don't.
func isFinal(version string) bool { return isExact(version) || isDigest(version) }

// choose returns the version that is wanted out of those there are: one that is written the same, or means the same, or else the newest
// that a range allows. Pre-releases are for ranges that name one. Versions that are none are never chosen but by name.
func choose(wanted string, published []string) (string, error) {
	constraint := wanted
	if constraint == "" {
		constraint = "*"
	}
	for _, spelled := range spellings(wanted) {
		for _, version := range published {
			if version == spelled {
				return version, nil
			}
		}
	}
	allowed, err := semver.NewConstraint(constraint)
	if err != nil {
		return "", fmt.Errorf("%w: %q is neither a version that is there nor a range", ErrInvalid, wanted)
	}
	var newest *semver.Version
	chosen := ""
	for _, candidate := range published {
		version, err := semver.NewVersion(candidate)
		if err == nil && allowed.Check(version) && (newest == nil || version.GreaterThan(newest)) {
			newest, chosen = version, candidate
		}
	}
	if newest == nil {
		return "", fmt.Errorf("%w: %s", ErrNotFound, lacking(wanted, len(published)))
	}
	return chosen, nil
}

func lacking(wanted string, published int) string {
	if wanted == "" {
		return fmt.Sprintf("none of %d versions is stable", published)
	}
	return fmt.Sprintf("none of %d versions is the one", published)
}

// spellings are the ways to write a version, with the one that was used first.
func spellings(version string) []string {
	switch {
	case !isExact(version):
		return []string{version}
	case strings.HasPrefix(version, "v"):
		return []string{version, version[1:]}
	default:
		return []string{version, "v" + version}
	}
}
