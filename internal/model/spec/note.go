package spec

import (
	"slices"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Notes says what a user should know about a Cluster that is not wrong. Each is a Violation for its path and remedy.
func Notes(c *anywherev1.Cluster) Violations {
	var notes Violations
	if count := c.Spec.ControlPlaneConfiguration.Count; !local(c) && count > 0 && !slices.Contains([]int{3, 5}, count) {
		notes = append(notes, one(controlPlane+".count", "use 3 or 5", "a cluster for production has 3 or 5 control planes, this one has %d", count)...)
	}
	if len(c.Spec.WorkerNodeGroupConfigurations) == 0 {
		notes = append(notes, one(workers, "add a group for workers of their own", "there are no workers: pods run on control planes")...)
	}
	if c.Spec.LicenseToken != "" {
		notes = append(notes, one("spec.licenseToken", "remove it", "a licence is not needed, and has no effect")...)
	}
	if m := c.Spec.RegistryMirrorConfiguration; m != nil && m.InsecureSkipVerify {
		notes = append(notes, one("spec.registryMirrorConfiguration.insecureSkipVerify", "set caCertContent instead", "machines trust whoever answers at the mirror's address")...)
	}
	return notes
}
