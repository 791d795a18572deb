package spec

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// clusterName begins with a letter: objects and machines are named after it.
var clusterName = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)

// longestName leaves room in names of machines for what comes behind.
const longestName = 35

func nameRule(c *anywherev1.Cluster) Violations {
	if clusterName.MatchString(c.Name) {
		return nil
	}
	return one("metadata.name", "begin with a letter, then use small letters, digits and dashes, such as prod-1", "%q is not a valid name of a cluster", printable(c.Name))
}

func nameLengthRule(c *anywherev1.Cluster) Violations {
	if len(c.Name) <= longestName {
		return nil
	}
	return one("metadata.name", "choose a shorter name", "number of characters in %v should be less than %d", printable(c.Name), longestName+1)
}

// managementRule refuses a spec that says two things.
func managementRule(c *anywherev1.Cluster) Violations {
	if c.Spec.Management == nil || c.Spec.ManagementCluster.Name == "" {
		return nil
	}
	own := c.Spec.ManagementCluster.Name == c.Name
	switch {
	case *c.Spec.Management && !own:
		return one("spec.managementCluster.name", "leave out management for a workload cluster, or managementCluster for a management cluster",
			"management is true, and another cluster is named")
	case !*c.Spec.Management && own:
		return one("spec.managementCluster.name", "name the cluster that manages this one, or leave out management",
			"management is false, and the cluster itself is named")
	}
	return nil
}

func managementNameRule(c *anywherev1.Cluster) Violations {
	name := c.Spec.ManagementCluster.Name
	if name == "" || name == c.Name || len(name) <= longestName && clusterName.MatchString(name) {
		return nil
	}
	return one("spec.managementCluster.name", "give the name of a management cluster", "%q is not a valid name of a cluster", printable(name))
}

// datacenterRule refuses the clouds that Drover does not drive by name.
func datacenterRule(c *anywherev1.Cluster) Violations {
	ref := c.Spec.DatacenterRef
	switch ref.Kind {
	case anywherev1.DockerDatacenterConfigKind, anywherev1.PacketDatacenterConfigKind:
	case "":
		return one("spec.datacenterRef.kind", supported, "is not set")
	default:
		return one("spec.datacenterRef.kind", supported, "%s is not supported", printable(ref.Kind))
	}
	return nameOf("spec.datacenterRef", ref)
}

// nameOf wants a reference to have a name that an object can have.
func nameOf(path string, ref anywherev1.Ref) Violations {
	if ref.Name == "" {
		return one(path+".name", "name an object of kind "+ref.Kind, "is not set")
	}
	if len(validation.IsDNS1123Subdomain(ref.Name)) > 0 {
		return one(path+".name", "use small letters, digits, dashes and dots", "%q is not a valid name", printable(ref.Name))
	}
	return nil
}
