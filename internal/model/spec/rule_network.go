package spec

import (
	"net/netip"
	"path"

	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Default prefix lengths of the Pod blocks of nodes, and the maximum difference from the prefix
// length of the Pod block of the cluster.
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
		return violation(at, "use one CIDR block such as "+example, "exactly one CIDR block is required, got %d", len(blocks))
	}
	if _, err := netip.ParsePrefix(blocks[0]); err != nil {
		return violation(at+"[0]", "write it as "+example, "%q is not a CIDR block", printable(blocks[0]))
	}
	return nil
}

// block returns the only CIDR block, if it is valid.
func block(blocks []string) (netip.Prefix, bool) {
	if len(blocks) != 1 {
		return netip.Prefix{}, false
	}
	prefix, err := netip.ParsePrefix(blocks[0])
	return prefix, err == nil
}

// overlapRule keeps the addresses of Pods and services apart.
func overlapRule(c *anywherev1.Cluster) Violations {
	pods, ok := block(c.Spec.ClusterNetwork.Pods.CidrBlocks)
	services, also := block(c.Spec.ClusterNetwork.Services.CidrBlocks)
	if !ok || !also || !pods.Overlaps(services) {
		return nil
	}
	return violation(network+".services.cidrBlocks[0]", "choose blocks that do not overlap", "%s overlaps with the Pod block %s", services, pods)
}

// maskRule checks that the Pod block can be divided among nodes, within the limits of the
// controller manager.
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
		return violation(at, "use 24, or leave it out", "%d is longer than an address", mask)
	case pods.Bits() >= mask:
		return violation(at, "use a larger Pod block or a larger cidrMaskSize", "the Pod block %s is too small for a /%d per node", pods, mask)
	case mask-pods.Bits() > maxMaskGap:
		return violation(at, "use a smaller Pod block or a smaller cidrMaskSize", "a /%d per node in the Pod block %s differs by more than %d bits", mask, pods, maxMaskGap)
	}
	return nil
}

// cniRule requires exactly one Pod network.
func cniRule(c *anywherev1.Cluster) Violations {
	n := c.Spec.ClusterNetwork
	switch {
	case n.CNI != "" && n.CNIConfig != nil:
		return violation(network+".cni", "remove cni and keep cniConfig", "cni and cniConfig must not both be set")
	case n.CNI != "" && n.CNI != anywherev1.CiliumCNI && n.CNI != anywherev1.KindnetdCNI:
		return violation(network+".cni", "remove it, or "+useCilium, "%q is not supported", printable(n.CNI))
	case n.CNI == anywherev1.CiliumCNI:
		return nil
	case n.CNI == anywherev1.KindnetdCNI:
		return kindnetdProblems(c)
	}
	return cniConfigProblems(c)
}

const useCilium = "write cniConfig: {cilium: {}}"

func cniConfigProblems(c *anywherev1.Cluster) Violations {
	config := c.Spec.ClusterNetwork.CNIConfig
	switch {
	case config == nil || config.Cilium == nil && config.Kindnetd == nil:
		return violation(network+".cniConfig", useCilium, "no CNI is specified")
	case config.Cilium != nil && config.Kindnetd != nil:
		return violation(network+".cniConfig", "keep one of them", "cannot specify more than one CNI")
	case config.Kindnetd != nil:
		return kindnetdProblems(c)
	}
	return nil
}

func kindnetdProblems(c *anywherev1.Cluster) Violations {
	if local(c) {
		return nil
	}
	return violation(network+".cniConfig.kindnetd", useCilium, "kindnetd is only supported with %s", anywherev1.DockerDatacenterConfigKind)
}

const installOwnNetwork = "remove it, or set skipUpgrade: true and install Cilium with a HelmChartProxy"

// ciliumRule rejects settings that the Pod network of Drover does not support, so that nobody
// relies on them.
func ciliumRule(c *anywherev1.Cluster) Violations {
	if c.Spec.ClusterNetwork.CNIConfig == nil || c.Spec.ClusterNetwork.CNIConfig.Cilium == nil {
		return nil
	}
	cilium, at := c.Spec.ClusterNetwork.CNIConfig.Cilium, network+".cniConfig.cilium"
	if ptr.Deref(cilium.SkipUpgrade, false) {
		return ownCiliumProblems(cilium, at)
	}
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
			problems = append(problems, violation(at+"."+setting.field, installOwnNetwork, "the Pod network that Drover installs does not support this setting")...)
		}
	}
	return append(problems, helmValuesProblems(cilium, at+".helmValues")...)
}

func policyProblems(cilium *anywherev1.CiliumConfig, at string) Violations {
	switch cilium.PolicyEnforcementMode {
	case "":
		return nil
	case anywherev1.CiliumPolicyModeDefault, anywherev1.CiliumPolicyModeNever:
		return nil
	case anywherev1.CiliumPolicyModeAlways:
		return violation(at, installOwnNetwork, "the Pod network that Drover installs does not enforce network policies")
	}
	return violation(at, "use default or never", "%q is not a policy enforcement mode", printable(string(cilium.PolicyEnforcementMode)))
}

func routingProblems(cilium *anywherev1.CiliumConfig, at string) Violations {
	switch cilium.RoutingMode {
	case "":
		return nil
	case anywherev1.CiliumRoutingModeDirect:
		if cilium.IPv4NativeRoutingCIDR == "" {
			return violation(at, "remove routingMode: packets are always routed directly", "ipv4NativeRoutingCIDR is required with routingMode direct")
		}
		return violation(at, "remove it: packets are always routed directly", "the Pod network that Drover installs does not support this setting")
	case anywherev1.CiliumRoutingModeOverlay:
		return violation(at, installOwnNetwork, "the Pod network that Drover installs does not support overlays")
	}
	return violation(at, "leave it out", "%q is not a routing mode", printable(string(cilium.RoutingMode)))
}

func resolvConfRule(c *anywherev1.Cluster) Violations {
	conf := c.Spec.ClusterNetwork.DNS.ResolvConf
	if conf == nil || conf.Path == "" || path.IsAbs(conf.Path) && path.Clean(conf.Path) == conf.Path {
		return nil
	}
	return violation(network+".dns.resolvConf.path", "use a path such as /etc/resolv.conf", "%q is not an absolute path", printable(conf.Path))
}
