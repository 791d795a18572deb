package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// minorVersion is the format of Kubernetes versions in a spec.
var minorVersion = regexp.MustCompile(`^1\.(0|[1-9]\d{0,3})$`)

// maxWorkerSkew is how many minor versions workers may be older than the control plane.
const maxWorkerSkew = 2

const versionForm = `write it as "1.36", in quotes and without a patch version`

func versionRule(c *anywherev1.Cluster) Violations {
	version := c.Spec.KubernetesVersion
	if version == "" {
		return violation("spec.kubernetesVersion", versionForm, "is not set")
	}
	if !minorVersion.MatchString(version) {
		return violation("spec.kubernetesVersion", versionForm, "%q is not a minor version of Kubernetes", printable(version))
	}
	return nil
}

func groupVersionRule(c *anywherev1.Cluster) Violations {
	return eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		if g.KubernetesVersion == nil || minorVersion.MatchString(*g.KubernetesVersion) {
			return nil
		}
		return violation(path+".kubernetesVersion", versionForm, "%q is not a minor version of Kubernetes", printable(*g.KubernetesVersion))
	})
}

// skewRule keeps workers within the supported version skew of kubelets and API servers.
func skewRule(c *anywherev1.Cluster) Violations {
	cluster, ok := minor(c.Spec.KubernetesVersion)
	if !ok {
		return nil
	}
	return eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		group, ok := minor(ptr.Deref(g.KubernetesVersion, c.Spec.KubernetesVersion))
		if !ok || group <= cluster && group >= cluster-maxWorkerSkew {
			return nil
		}
		return violation(path+".kubernetesVersion", fmt.Sprintf("use 1.%d to 1.%d, or leave it out", max(0, cluster-maxWorkerSkew), cluster),
			"cluster level minor version must be within %d versions greater than worker node group version: %v", maxWorkerSkew, *g.KubernetesVersion)
	})
}

// minor returns the minor version.
func minor(version string) (int, bool) {
	if !minorVersion.MatchString(version) {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimPrefix(version, "1."))
	return n, err == nil
}

func eksaVersionRule(c *anywherev1.Cluster) Violations {
	if c.Spec.EksaVersion == "" || release(c.Spec.EksaVersion) != nil {
		return nil
	}
	return violation("spec.eksaVersion", "write it as v0.25.0, or leave it out", "%q is not a semantic version", printable(c.Spec.EksaVersion))
}

// droverVersionRule allows a version of Drover for management clusters, which run it.
func droverVersionRule(c *anywherev1.Cluster) Violations {
	const at = "spec.droverVersion"
	switch wanted := c.Spec.DroverVersion; {
	case wanted == "":
		return nil
	case release(wanted) == nil:
		return violation(at, "write it as v0.2.0, or leave it out", "%q is not a semantic version", printable(wanted))
	case !c.IsSelfManaged():
		return violation(at, "set it for the management cluster", "a workload cluster doesn't run Drover")
	}
	return nil
}

// release parses a version such as v1.2.3. It returns nil if the version is invalid.
func release(version string) *semver.Version {
	number, ok := strings.CutPrefix(version, "v")
	if !ok {
		return nil
	}
	parsed, err := semver.StrictNewVersion(number)
	if err != nil {
		return nil
	}
	return parsed
}
