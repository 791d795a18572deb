package spec

import (
	"fmt"

	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// maxUpgrade is how many minor versions an upgrade may advance.
const maxUpgrade = 1

// clusterUpgradeRule allows upgrades by one minor version and no downgrades.
func clusterUpgradeRule(was, is *anywherev1.Cluster) Violations {
	return upgradeProblems(was.Spec.KubernetesVersion, is.Spec.KubernetesVersion, "spec.kubernetesVersion")
}

// groupUpgradeRule applies the same rule to each existing group, whether its version is its own or
// that of the cluster.
func groupUpgradeRule(was, is *anywherev1.Cluster) Violations {
	before := groupVersions(was)
	return eachGroup(is, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		version, there := before[g.Name]
		if !there || g.KubernetesVersion == nil && version == was.Spec.KubernetesVersion {
			return nil // It has the version of the cluster, which clusterUpgradeRule checks.
		}
		return upgradeProblems(version, ptr.Deref(g.KubernetesVersion, is.Spec.KubernetesVersion), path+".kubernetesVersion")
	})
}

func groupVersions(c *anywherev1.Cluster) map[string]string {
	versions := map[string]string{}
	for _, g := range c.Spec.WorkerNodeGroupConfigurations {
		versions[g.Name] = ptr.Deref(g.KubernetesVersion, c.Spec.KubernetesVersion)
	}
	return versions
}

func upgradeProblems(was, is, path string) Violations {
	from, ok := minor(was)
	to, also := minor(is)
	switch {
	case !ok || !also || to == from:
		return nil
	case to < from:
		return violation(path, fmt.Sprintf("use %s or later", was), "kubernetes version downgrade is not supported (%s) -> (%s)", was, is)
	case to-from > maxUpgrade:
		return violation(path, fmt.Sprintf("upgrade to 1.%d first", from+1), "only +%d minor version skew is supported, minor version skew detected %v", maxUpgrade, to-from)
	}
	return nil
}

// groupVersionRemovedRule separates the two steps of an upgrade: first the control plane, then the
// group.
func groupVersionRemovedRule(was, is *anywherev1.Cluster) Violations {
	if was.Spec.KubernetesVersion == is.Spec.KubernetesVersion {
		return nil
	}
	own := map[string]string{}
	for _, g := range was.Spec.WorkerNodeGroupConfigurations {
		own[g.Name] = ptr.Deref(g.KubernetesVersion, "")
	}
	return eachGroup(is, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		if g.KubernetesVersion != nil || own[g.Name] == "" {
			return nil
		}
		return violation(path+".kubernetesVersion", "keep it until the control plane is upgraded, then remove it",
			"can't simultaneously remove worker kubernetesVersion and upgrade cluster level kubernetesVersion: %v", is.Spec.KubernetesVersion)
	})
}

func eksaVersionKeptRule(was, is *anywherev1.Cluster) Violations {
	if was.Spec.EksaVersion == "" || is.Spec.EksaVersion != "" {
		return nil
	}
	return violation("spec.eksaVersion", "restore it", "eksaVersion cannot be removed")
}

// eksaVersionSkewRule allows upgrades by one minor version, and downgrades from an unsupported
// version.
func eksaVersionSkewRule(was, is *anywherev1.Cluster) Violations {
	const at = "spec.eksaVersion"
	if is.Annotations[anywherev1.SkipVersionSkewCheckAnnotation] == "true" {
		return nil
	}
	from, to := release(was.Spec.EksaVersion), release(is.Spec.EksaVersion)
	if from == nil || to == nil {
		return nil
	}
	failed := ptr.Deref(was.Status.FailureReason, "") == anywherev1.EksaVersionInvalidReason
	switch {
	case from.Major() != to.Major():
		return violation(at, fmt.Sprintf("use a version v%d.x", from.Major()), "eksaVersion can't change from %s to %s: the major version differs", was.Spec.EksaVersion, is.Spec.EksaVersion)
	case to.Minor() < from.Minor() && !failed:
		return violation(at, "use "+was.Spec.EksaVersion+" or later", "eksaVersion downgrade is not supported (%s) -> (%s)", was.Spec.EksaVersion, is.Spec.EksaVersion)
	case to.Minor() > from.Minor()+maxUpgrade:
		return violation(at, fmt.Sprintf("upgrade to v%d.%d first", from.Major(), from.Minor()+1), "eksaVersion can't change from %s to %s: only +%d minor version is supported",
			was.Spec.EksaVersion, is.Spec.EksaVersion, maxUpgrade)
	}
	return nil
}
