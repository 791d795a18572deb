package version

import (
	"strconv"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// development marks builds of untagged commits: v0.1.0-dev.7+g1a2b3c4 is seven commits into the
// work on v0.1.0. A program that was built without the Makefile has no number.
const development = "dev"

// Older reports whether version a precedes version b, by the rules of semantic versioning. It is
// false if either can't be parsed, and between two development builds of one release if one of them
// has no number: nothing says which came first.
func Older(a, b string) bool {
	first, err := utilversion.ParseSemantic(a)
	if err != nil {
		return false
	}
	second, err := utilversion.ParseSemantic(b)
	if err != nil || sameLine(first, second) && (unnumbered(first) || unnumbered(second)) {
		return false
	}
	return first.LessThan(second)
}

// SameBuild reports whether two versions name one build. A development build without a number could
// be any, so it is never known to be the same as another.
func SameBuild(a, b string) bool {
	v, err := utilversion.ParseSemantic(a)
	return err == nil && a == b && !unnumbered(v)
}

// Released reports whether a version is a release. Other builds come without compatibility
// promises.
func Released(v string) bool {
	parsed, err := utilversion.ParseSemantic(v)
	return err == nil && parsed.PreRelease() == ""
}

// Development reports whether a version is of an untagged commit or of no commit at all.
func Development(v string) bool {
	parsed, err := utilversion.ParseSemantic(v)
	return err == nil && isDevelopment(parsed)
}

func isDevelopment(v *utilversion.Version) bool {
	kind, _, _ := strings.Cut(v.PreRelease(), ".")
	return kind == development
}

func unnumbered(v *utilversion.Version) bool {
	_, number, _ := strings.Cut(v.PreRelease(), ".")
	_, err := strconv.ParseUint(number, 10, 64)
	return isDevelopment(v) && err != nil
}

// sameLine reports whether both are development builds of one release.
func sameLine(a, b *utilversion.Version) bool {
	return isDevelopment(a) && isDevelopment(b) &&
		a.Major() == b.Major() && a.Minor() == b.Minor() && a.Patch() == b.Patch()
}
