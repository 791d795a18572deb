package spec

import (
	"slices"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Notes returns warnings about a valid Cluster, each with its path and a remedy.
func Notes(c *anywherev1.Cluster) Violations {
	var notes Violations
	if count := c.Spec.ControlPlaneConfiguration.Count; !local(c) && count > 0 && !slices.Contains([]int{3, 5}, count) {
		notes = append(notes, violation(controlPlane+".count", "use 3 or 5", "production clusters need 3 or 5 control plane machines, this one has %d", count)...)
	}
	if etcd := c.Spec.ExternalEtcdConfiguration; etcd != nil && !local(c) && etcd.Count == 1 {
		notes = append(notes, violation(externalEtcd+".count", "use 3 or 5", "production clusters need 3 or 5 members of etcd, this one has 1")...)
	}
	if len(c.Spec.WorkerNodeGroupConfigurations) == 0 {
		notes = append(notes, violation(workers, "add a worker group to run Pods on separate machines", "no worker groups: Pods run on control plane machines")...)
	}
	if c.Spec.LicenseToken != "" {
		notes = append(notes, violation("spec.licenseToken", "remove it", "a license is not required and has no effect")...)
	}
	if m := c.Spec.RegistryMirrorConfiguration; m != nil && m.InsecureSkipVerify {
		notes = append(notes, violation("spec.registryMirrorConfiguration.insecureSkipVerify", "set caCertContent instead", "machines do not verify the certificate of the mirror")...)
	}
	return notes
}
