package artifact

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// isExact reports whether text is a version, such as 1.2.3 or v1.2.3-rc.1. 1.2 is a range.
func isExact(version string) bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	return err == nil
}

func isDigest(version string) bool { return strings.HasPrefix(version, digestPrefix) }

// isFinal reports whether a version always refers to the same content, unlike tags such as latest.
func isFinal(version string) bool { return isExact(version) || isDigest(version) }

// choose returns the published version that is spelled like the wanted one, or equal to it, or else
// the newest one in a range. Pre-releases match only ranges that contain one. Other tags match only
// by name.
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
		return "", fmt.Errorf("%w: %q is neither a published version nor a range", ErrInvalid, wanted)
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
	return fmt.Sprintf("none of %d versions matches", published)
}

// spellings returns the version as it is spelled, and with or without the prefix v.
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
