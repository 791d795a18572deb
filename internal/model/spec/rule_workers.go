package spec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// groupNamesRule checks the names of groups. The names of the cluster and the group form the name
// of a MachineDeployment, which is also the value of a label.
func groupNamesRule(c *anywherev1.Cluster) Violations {
	seen := map[string]bool{}
	return eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		path += ".name"
		defer func() { seen[g.Name] = true }()
		switch {
		case g.Name == "":
			return violation(path, "name each group", "must specify name for worker nodes")
		case len(validation.IsDNS1123Label(g.Name)) > 0:
			return violation(path, "use lower-case letters, digits and dashes", "%q is not a valid group name", printable(g.Name))
		case len(c.Name)+1+len(g.Name) > validation.LabelValueMaxLength:
			return violation(path, "choose a shorter name", "the names of the cluster and the group together exceed %d characters", validation.LabelValueMaxLength-1)
		case seen[g.Name]:
			return violation(path, "use a unique name for each group", "worker node group name %q is used more than once", g.Name)
		}
		return nil
	})
}

func groupCountsRule(c *anywherev1.Cluster) Violations {
	return eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		if g.Count == nil || *g.Count >= 0 {
			return nil
		}
		return violation(path+".count", "use 0 or more", "worker node count must not be negative")
	})
}

func groupScalingRule(c *anywherev1.Cluster) Violations {
	return eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		bounds := g.AutoScalingConfiguration
		if bounds == nil {
			return nil
		}
		at := path + ".autoscalingConfiguration"
		switch {
		case bounds.MinCount < 0:
			return violation(at+".minCount", "use 0 or more", "minCount must not be negative")
		case bounds.MinCount > bounds.MaxCount:
			return violation(at+".maxCount", "raise maxCount or lower minCount", "minCount %d must not be greater than maxCount %d", bounds.MinCount, bounds.MaxCount)
		case g.Count != nil && (*g.Count < bounds.MinCount || *g.Count > bounds.MaxCount):
			return violation(path+".count", "remove count, or set it within the bounds", "count %d must be between minCount %d and maxCount %d",
				*g.Count, bounds.MinCount, bounds.MaxCount)
		}
		return nil
	})
}

func groupMachinesRule(c *anywherev1.Cluster) Violations {
	return eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		return machineGroup(c, g.MachineGroupRef, path, "must specify machineGroupRef for worker nodes")
	})
}

func groupTaintsRule(c *anywherev1.Cluster) Violations {
	return eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		return taintProblems(g.Taints, path+".taints")
	})
}

func groupLabelsRule(c *anywherev1.Cluster) Violations {
	return eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		return labelProblems(g.Labels, path+".labels")
	})
}

func groupRolloutRule(c *anywherev1.Cluster) Violations {
	return eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		if g.UpgradeRolloutStrategy == nil {
			return nil
		}
		path += ".upgradeRolloutStrategy"
		r := g.UpgradeRolloutStrategy.RollingUpdate
		if problems := strategyProblems(g.UpgradeRolloutStrategy.Type, path); problems != nil {
			return problems
		}
		if g.UpgradeRolloutStrategy.Type == anywherev1.InPlaceStrategyType {
			return surgelessProblems(r != nil, path)
		}
		switch {
		case r == nil:
			return violation(path+".rollingUpdate", "set maxSurge and maxUnavailable, or remove upgradeRolloutStrategy", "rollingUpdate is required for RollingUpdate")
		case r.MaxSurge < 0 || r.MaxUnavailable < 0:
			return violation(path+".rollingUpdate", "use 0 or more", "maxSurge and maxUnavailable must not be negative")
		case r.MaxSurge == 0 && r.MaxUnavailable == 0:
			return violation(path+".rollingUpdate", "set one of them to 1", "maxSurge and maxUnavailable must not both be 0")
		}
		return nil
	})
}

func groupHealthRule(c *anywherev1.Cluster) Violations {
	return eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		return healthProblems(g.MachineHealthCheck, path+".machineHealthCheck")
	})
}

func groupKubeletRule(c *anywherev1.Cluster) Violations {
	return eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		return kubeletProblems(g.KubeletConfiguration, path+".kubeletConfiguration")
	})
}

// untaintedRule leaves room for the components of a management cluster.
func untaintedRule(c *anywherev1.Cluster) Violations {
	groups := c.Spec.WorkerNodeGroupConfigurations
	if c.IsManaged() || len(groups) == 0 || slices.ContainsFunc(groups, acceptsPods) {
		return nil
	}
	return violation(workers, "remove the taints of one group, or use PreferNoSchedule: components of the management cluster run there",
		"at least one WorkerNodeGroupConfiguration must not have NoExecute and/or NoSchedule taints")
}

func acceptsPods(g anywherev1.WorkerNodeGroupConfiguration) bool {
	return !slices.ContainsFunc(g.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute || t.Effect == corev1.TaintEffectNoSchedule
	})
}

func strategyProblems(strategy anywherev1.UpgradeRolloutStrategyType, path string) Violations {
	switch strategy {
	case anywherev1.RollingUpdateStrategyType, anywherev1.InPlaceStrategyType, "":
		return nil
	}
	return violation(path+".type", "use "+string(anywherev1.RollingUpdateStrategyType)+" or "+string(anywherev1.InPlaceStrategyType), "%q is not supported", printable(string(strategy)))
}

// surgelessProblems rejects settings of replacements where machines are upgraded in place.
func surgelessProblems(set bool, path string) Violations { //nolint:revive // it is the value of a field
	if !set {
		return nil
	}
	return violation(path+".rollingUpdate", "remove rollingUpdate, or use type RollingUpdate", "rollingUpdate must not be set for InPlace, which upgrades one machine at a time")
}
