package spec

import (
	"net/netip"
	"path"

	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Sizes of the blocks that nodes get if the spec does not say, and how much larger the block of all pods may be.
const (
	nodeMaskIPv4 = 24
	nodeMaskIPv6 = 64
	maxMaskGap   = 16
)

func blocksRule(c *anywherev1.Cluster) Violations {
	n := c.Spec.ClusterNetwork
	problems := blockProblems(n.Pods.CidrBlocks, network+".pods.cidrBlocks", DefaultPodCIDR)
	return append(problems, blockProblems(n.Services.CidrBlocks, network+".services.cidrBlocks", DefaultServiceCIDR)...)
}

func blockProblems(blocks []string, at, example string) Violations {
	if len(blocks) != 1 {
		return one(at, "give one block such as "+example, "exactly one block is needed, there are %d", len(blocks))
	}
	if _, err := netip.ParsePrefix(blocks[0]); err != nil {
		return one(at+"[0]", "write it as "+example, "%q is not a block of addresses", printable(blocks[0]))
	}
	return nil
}

// block returns the only block, if it is one.
func block(blocks []string) (netip.Prefix, bool) {
	if len(blocks) != 1 {
		return netip.Prefix{}, false
	}
	prefix, err := netip.ParsePrefix(blocks[0])
	return prefix, err == nil
}

// overlapRule keeps an address of a pod from being one of a service.
func overlapRule(c *anywherev1.Cluster) Violations {
	pods, ok := block(c.Spec.ClusterNetwork.Pods.CidrBlocks)
	services, also := block(c.Spec.ClusterNetwork.Services.CidrBlocks)
	if !ok || !also || !pods.Overlaps(services) {
		return nil
	}
	return one(network+".services.cidrBlocks[0]", "choose another block for one of them", "%s overlaps with the block of pods, %s", services, pods)
}

// maskRule: each node gets a part of the block of pods, and there can't be more parts than the controller manager can count.
func maskRule(c *anywherev1.Cluster) Violations {
	pods, ok := block(c.Spec.ClusterNetwork.Pods.CidrBlocks)
	if !ok {
		return nil
	}
	mask := nodeMaskIPv4
	if pods.Addr().Is6() {
		mask = nodeMaskIPv6
	}
	if nodes := c.Spec.ClusterNetwork.Nodes; nodes != nil {
		mask = ptr.Deref(nodes.CIDRMaskSize, mask)
	}
	at := network + ".nodes.cidrMaskSize"
	switch {
	case mask > pods.Addr().BitLen():
		return one(at, "use 24, or leave it out", "%d is more than an address has", mask)
	case pods.Bits() >= mask:
		return one(at, "use a larger block for pods, or a larger cidrMaskSize", "the block of pods %s is too small to give each node a /%d", pods, mask)
	case mask-pods.Bits() > maxMaskGap:
		return one(at, "use a smaller block for pods, or a smaller cidrMaskSize", "a /%d in the block of pods %s differs by more than %d", mask, pods, maxMaskGap)
	}
	return nil
}

// cniRule wants one network to be named, in one way.
func cniRule(c *anywherev1.Cluster) Violations {
	n := c.Spec.ClusterNetwork
	switch {
	case n.CNI != "" && n.CNIConfig != nil:
		return one(network+".cni", "remove cni, and keep cniConfig", "cni and cniConfig must not both be set")
	case n.CNI != "" && n.CNI != anywherev1.CiliumCNI && n.CNI != anywherev1.KindnetdCNI:
		return one(network+".cni", "remove it, or "+chosenNetwork, "%q is not supported", printable(n.CNI))
	case n.CNI == anywherev1.CiliumCNI:
		return nil
	case n.CNI == anywherev1.KindnetdCNI:
		return kindnetdProblems(c)
	}
	return cniConfigProblems(c)
}

const chosenNetwork = "write cniConfig: {cilium: {}}"

func cniConfigProblems(c *anywherev1.Cluster) Violations {
	config := c.Spec.ClusterNetwork.CNIConfig
	switch {
	case config == nil || config.Cilium == nil && config.Kindnetd == nil:
		return one(network+".cniConfig", chosenNetwork, "no CNI is specified")
	case config.Cilium != nil && config.Kindnetd != nil:
		return one(network+".cniConfig", "keep one of them", "cannot specify more than one CNI")
	case config.Kindnetd != nil:
		return kindnetdProblems(c)
	}
	return nil
}

func kindnetdProblems(c *anywherev1.Cluster) Violations {
	if local(c) {
		return nil
	}
	return one(network+".cniConfig.kindnetd", chosenNetwork, "kindnetd is only supported with %s", anywherev1.DockerDatacenterConfigKind)
}

const ownNetwork = "leave it out, or set skipUpgrade: true and install Cilium with a HelmChartProxy"

// ciliumRule refuses settings that the network that Drover ships does not have, so that nobody relies on them.
func ciliumRule(c *anywherev1.Cluster) Violations {
	if c.Spec.ClusterNetwork.CNIConfig == nil || c.Spec.ClusterNetwork.CNIConfig.Cilium == nil {
		return nil
	}
	cilium, at := c.Spec.ClusterNetwork.CNIConfig.Cilium, network+".cniConfig.cilium"
	problems := policyProblems(cilium, at+".policyEnforcementMode")
	problems = append(problems, routingProblems(cilium, at+".routingMode")...)
	for _, setting := range []struct {
		field string
		set   bool
	}{
		{"egressMasqueradeInterfaces", cilium.EgressMasqueradeInterfaces != ""},
		{"ipv4NativeRoutingCIDR", cilium.IPv4NativeRoutingCIDR != ""},
		{"ipv6NativeRoutingCIDR", cilium.IPv6NativeRoutingCIDR != ""},
		{"cniExclusive", cilium.CNIExclusive != nil},
	} {
		if setting.set {
			problems = append(problems, one(at+"."+setting.field, ownNetwork, "the network that Drover installs does not have this setting")...)
		}
	}
	return append(problems, helmValuesProblems(cilium, at+".helmValues")...)
}

func policyProblems(cilium *anywherev1.CiliumConfig, at string) Violations {
	skip := ptr.Deref(cilium.SkipUpgrade, false)
	switch cilium.PolicyEnforcementMode {
	case "":
		return nil
	case anywherev1.CiliumPolicyModeDefault, anywherev1.CiliumPolicyModeNever:
		if skip {
			return one(at, "remove policyEnforcementMode", "policyEnforcementMode must not be set with skipUpgrade")
		}
		return nil
	case anywherev1.CiliumPolicyModeAlways:
		return one(at, ownNetwork, "the network that Drover installs does not enforce network policies")
	}
	return one(at, "use default or never", "%q is not a mode of enforcement", printable(string(cilium.PolicyEnforcementMode)))
}

func routingProblems(cilium *anywherev1.CiliumConfig, at string) Violations {
	switch cilium.RoutingMode {
	case "":
		return nil
	case anywherev1.CiliumRoutingModeDirect:
		if cilium.IPv4NativeRoutingCIDR == "" {
			return one(at, "leave out routingMode: packets are routed as they are", "ipv4NativeRoutingCIDR is required with routingMode direct")
		}
		return one(at, "leave it out: packets are routed as they are", "the network that Drover installs does not have this setting")
	case anywherev1.CiliumRoutingModeOverlay:
		return one(at, ownNetwork, "the network that Drover installs has no overlay")
	}
	return one(at, "leave it out", "%q is not a mode of routing", printable(string(cilium.RoutingMode)))
}

func resolvConfRule(c *anywherev1.Cluster) Violations {
	conf := c.Spec.ClusterNetwork.DNS.ResolvConf
	if conf == nil || conf.Path == "" || path.IsAbs(conf.Path) && path.Clean(conf.Path) == conf.Path {
		return nil
	}
	return one(network+".dns.resolvConf.path", "use a path such as /etc/resolv.conf", "%q is not a path of a file on a machine", printable(conf.Path))
}
