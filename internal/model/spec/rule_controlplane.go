package spec

import (
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// controlPlaneCountRule requires an odd number of etcd members.
func controlPlaneCountRule(c *anywherev1.Cluster) Violations {
	count := c.Spec.ControlPlaneConfiguration.Count
	switch {
	case count <= 0:
		return violation(controlPlane+".count", "use 1, or 3 or 5 to tolerate the loss of a machine", "control plane node count must be positive")
	case count%2 == 0 && c.Spec.ExternalEtcdConfiguration == nil:
		return violation(controlPlane+".count", "use an odd number: 1, 3 or 5",
			"control plane node count cannot be an even number when using stacked etcd topology")
	}
	return nil
}

// endpointRule checks the endpoint. Drover chooses the address of local machines, and reserves one
// for others if none is set.
func endpointRule(c *anywherev1.Cluster) Violations {
	endpoint := c.Spec.ControlPlaneConfiguration.Endpoint
	switch {
	case endpoint == nil || local(c) && endpoint.Host == "":
		return nil
	case local(c):
		return violation(controlPlane+".endpoint", "remove it: Drover chooses the address of local machines", "specifying endpoint host configuration in Cluster is not supported")
	case endpoint.Host == "":
		return violation(controlPlane+".endpoint.host", "set an address, or remove endpoint to reserve one automatically",
			"cluster controlPlaneConfiguration.Endpoint.Host is not set or is empty")
	case !isHost(endpoint.Host):
		return violation(controlPlane+".endpoint.host", "use an IP address or a host name without a port", "%q is not a valid address", printable(endpoint.Host))
	}
	return nil
}

func controlPlaneMachinesRule(c *anywherev1.Cluster) Violations {
	return machineGroup(c, c.Spec.ControlPlaneConfiguration.MachineGroupRef, controlPlane, "must specify machineGroupRef control plane machines")
}

func controlPlaneTaintsRule(c *anywherev1.Cluster) Violations {
	taints := c.Spec.ControlPlaneConfiguration.Taints
	if len(taints) > 0 && len(c.Spec.WorkerNodeGroupConfigurations) == 0 {
		return violation(controlPlane+".taints", "add a group of workers, or remove the taints", "cannot taint control plane when there is no worker node")
	}
	return taintProblems(taints, controlPlane+".taints")
}

func controlPlaneLabelsRule(c *anywherev1.Cluster) Violations {
	return labelProblems(c.Spec.ControlPlaneConfiguration.Labels, controlPlane+".labels")
}

// controlPlaneRolloutRule allows one machine to be added or removed at a time.
func controlPlaneRolloutRule(c *anywherev1.Cluster) Violations {
	strategy := c.Spec.ControlPlaneConfiguration.UpgradeRolloutStrategy
	if strategy == nil {
		return nil
	}
	path := controlPlane + ".upgradeRolloutStrategy"
	if problems := strategyProblems(strategy.Type, path); problems != nil {
		return problems
	}
	if strategy.Type == anywherev1.InPlaceStrategyType {
		return append(surgelessProblems(strategy.RollingUpdate != nil, path), inPlaceProblems(c, path)...)
	}
	if r := strategy.RollingUpdate; r != nil && r.MaxSurge != 0 && r.MaxSurge != 1 {
		return violation(path+".rollingUpdate.maxSurge", "use 1, or 0 without a spare machine", "maxSurge must be 0 or 1 for control planes")
	}
	return surgeProblems(c, path)
}

// inPlaceProblems rejects upgrades in place of control planes that Cluster API can't keep
// available: it adds a machine before it changes one, unless there are three. Machines of external
// etcd can only be replaced.
func inPlaceProblems(c *anywherev1.Cluster, path string) Violations {
	switch {
	case c.Spec.ControlPlaneConfiguration.Count < 3:
		return violation(path+".type", "use at least 3 control plane machines, or RollingUpdate", "InPlace requires at least 3 control plane machines")
	case c.Spec.ExternalEtcdConfiguration != nil:
		return violation(path+".type", "use RollingUpdate, or etcd on the control plane machines", "InPlace is not supported with external etcd, whose machines are replaced")
	}
	return nil
}

// surgeProblems rejects rollouts that remove a machine first when there are too few.
func surgeProblems(c *anywherev1.Cluster, path string) Violations {
	r := c.Spec.ControlPlaneConfiguration.UpgradeRolloutStrategy.RollingUpdate
	if r == nil || r.MaxSurge != 0 || c.Spec.ControlPlaneConfiguration.Count >= 3 {
		return nil
	}
	return violation(path+".rollingUpdate.maxSurge", "use 1, or at least 3 control plane machines", "maxSurge 0 requires at least 3 control plane machines")
}

func controlPlaneHealthRule(c *anywherev1.Cluster) Violations {
	return healthProblems(c.Spec.ControlPlaneConfiguration.MachineHealthCheck, controlPlane+".machineHealthCheck")
}

func controlPlaneKubeletRule(c *anywherev1.Cluster) Violations {
	return kubeletProblems(c.Spec.ControlPlaneConfiguration.KubeletConfiguration, controlPlane+".kubeletConfiguration")
}

// machineGroup requires a machine config, except for local machines, which are identical. It
// ignores unsupported infrastructure, which another rule rejects.
func machineGroup(c *anywherev1.Cluster, ref *anywherev1.Ref, path, unset string) Violations {
	path += ".machineGroupRef"
	switch {
	case local(c) && ref == nil || !local(c) && !remote(c):
		return nil
	case local(c):
		return violation(path, "remove it: all local machines are identical", "machine configs are not supported with %s", anywherev1.DockerDatacenterConfigKind)
	case ref == nil:
		return violation(path, "reference a "+anywherev1.PacketMachineConfigKind, "%s", unset)
	case ref.Kind != anywherev1.PacketMachineConfigKind:
		return violation(path+".kind", "use "+anywherev1.PacketMachineConfigKind, "%q is not supported", printable(ref.Kind))
	}
	return refNameProblems(path, *ref)
}

// isHost reports whether host is an IP address or a host name.
func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return len(validation.IsDNS1123Subdomain(host)) == 0 && !endsInNumber(host)
}

// endsInNumber reports whether the last label of a name consists of digits, which no domain does:
// it is an address that doesn't exist, such as 10.0.0.256.
func endsInNumber(name string) bool {
	last := name[strings.LastIndex(name, ".")+1:]
	return strings.Trim(last, "0123456789") == ""
}

// endpointBlockRule rejects an endpoint within the network of the cluster: nodes would send what is
// meant for the control plane to a Pod or a service. It is a rule for new clusters, because neither
// can be changed later.
func endpointBlockRule(c *anywherev1.Cluster) Violations {
	endpoint, _ := netip.ParseAddr(endpointOf(&c.Spec)) // a name is in no block
	if !endpoint.IsValid() || local(c) {
		return nil
	}
	for _, in := range []struct {
		name   string
		blocks []string
	}{{"Pod", c.Spec.ClusterNetwork.Pods.CidrBlocks}, {"service", c.Spec.ClusterNetwork.Services.CidrBlocks}} {
		if b, ok := block(in.blocks); ok && b.Contains(endpoint.Unmap()) {
			return violation(controlPlane+".endpoint.host", "choose an address outside of the Pod and service blocks, or other blocks", "%s is within the %s block %s", endpoint, in.name, b)
		}
	}
	return nil
}
