package spec

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// clusterName starts with a letter, because objects and machines are named after it.
var clusterName = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)

// maxNameLength leaves room for the suffixes in names of machines.
const maxNameLength = 35

func nameRule(c *anywherev1.Cluster) Violations {
	if clusterName.MatchString(c.Name) {
		return nil
	}
	return violation("metadata.name", "start with a letter and use lower-case letters, digits and dashes, such as prod-1", "%q is not a valid cluster name", printable(c.Name))
}

func nameLengthRule(c *anywherev1.Cluster) Violations {
	if len(c.Name) <= maxNameLength {
		return nil
	}
	return violation("metadata.name", "choose a shorter name", "number of characters in %v should be less than %d", printable(c.Name), maxNameLength+1)
}

// managementRule rejects a spec that contradicts itself.
func managementRule(c *anywherev1.Cluster) Violations {
	if c.Spec.Management == nil || c.Spec.ManagementCluster.Name == "" {
		return nil
	}
	own := c.Spec.ManagementCluster.Name == c.Name
	switch {
	case *c.Spec.Management && !own:
		return violation("spec.managementCluster.name", "remove management for a workload cluster, or managementCluster for a management cluster",
			"management is true but another cluster is named")
	case !*c.Spec.Management && own:
		return violation("spec.managementCluster.name", "name the cluster that manages this one, or remove management",
			"management is false but the cluster names itself")
	}
	return nil
}

func managementNameRule(c *anywherev1.Cluster) Violations {
	name := c.Spec.ManagementCluster.Name
	if name == "" || name == c.Name || len(name) <= maxNameLength && clusterName.MatchString(name) {
		return nil
	}
	return violation("spec.managementCluster.name", "use the name of a management cluster", "%q is not a valid cluster name", printable(name))
}

// datacenterRule rejects infrastructure that Drover does not support.
func datacenterRule(c *anywherev1.Cluster) Violations {
	ref := c.Spec.DatacenterRef
	switch ref.Kind {
	case anywherev1.DockerDatacenterConfigKind, anywherev1.PacketDatacenterConfigKind:
	case "":
		return violation("spec.datacenterRef.kind", supported, "is not set")
	default:
		return violation("spec.datacenterRef.kind", supported, "%s is not supported", printable(ref.Kind))
	}
	return refNameProblems("spec.datacenterRef", ref)
}

// refNameProblems requires a valid name in a reference.
func refNameProblems(path string, ref anywherev1.Ref) Violations {
	if ref.Name == "" {
		return violation(path+".name", "reference an object of kind "+ref.Kind, "is not set")
	}
	if len(validation.IsDNS1123Subdomain(ref.Name)) > 0 {
		return violation(path+".name", "use lower-case letters, digits, dashes and dots", "%q is not a valid name", printable(ref.Name))
	}
	return nil
}
