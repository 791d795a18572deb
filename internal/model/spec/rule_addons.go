package spec

import (
	"regexp"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/lockstep"
)

// skippedVersion is a value of the annotation that skips the wait for add-ons: the version of one
// upgrade, because a switch would stay on for all later ones.
var skippedVersion = regexp.MustCompile(`^v?1\.\d+(\.\d+)?$`)

// addOnWaitRule checks the annotations that control how upgrades wait for add-ons.
func addOnWaitRule(c *anywherev1.Cluster) Violations {
	const at = "metadata.annotations"
	var problems Violations
	if v, ok := c.Annotations[anywherev1.SkipAddOnWaitAnnotation]; ok && !skippedVersion.MatchString(v) {
		problems = violation(at+"["+anywherev1.SkipAddOnWaitAnnotation+"]", `use the Kubernetes version that is upgraded to, such as "1.36"`, "%q is not a Kubernetes version", printable(v))
	}
	if v, ok := c.Annotations[anywherev1.AddOnWaitTimeoutAnnotation]; ok {
		if _, err := lockstep.ParseTimeout(v); err != nil || v == "" {
			problems = append(problems, violation(at+"["+anywherev1.AddOnWaitTimeoutAnnotation+"]", "use a duration such as 45m", "%q is not a positive duration", printable(v))...)
		}
	}
	return problems
}
