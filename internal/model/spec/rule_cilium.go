package spec

import (
	"encoding/json"
	"net/netip"
	"slices"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// maxHelmValues bounds the values that a Cluster hands on in an annotation, of which an object has
// 256 KiB.
const maxHelmValues = 64 << 10

// ownCiliumProblems checks settings for the Cilium that the user installs. They are handed on to
// its chart, which knows all values.
func ownCiliumProblems(cilium *anywherev1.CiliumConfig, at string) Violations {
	var problems Violations
	modes := []anywherev1.CiliumPolicyEnforcementMode{"", anywherev1.CiliumPolicyModeDefault, anywherev1.CiliumPolicyModeAlways, anywherev1.CiliumPolicyModeNever}
	if mode := cilium.PolicyEnforcementMode; !slices.Contains(modes, mode) {
		problems = violation(at+".policyEnforcementMode", "use default, always or never", "%q is not a policy enforcement mode", printable(string(mode)))
	}
	switch mode := cilium.RoutingMode; {
	case !slices.Contains([]anywherev1.CiliumRoutingMode{"", anywherev1.CiliumRoutingModeOverlay, anywherev1.CiliumRoutingModeDirect}, mode):
		problems = append(problems, violation(at+".routingMode", "use overlay or direct", "%q is not a routing mode", printable(string(mode)))...)
	case mode == anywherev1.CiliumRoutingModeDirect && cilium.IPv4NativeRoutingCIDR == "" && cilium.IPv6NativeRoutingCIDR == "":
		problems = append(problems, violation(at+".ipv4NativeRoutingCIDR", "set it, or ipv6NativeRoutingCIDR", "is required with routingMode direct")...)
	}
	problems = append(problems, routedBlockProblems(cilium.IPv4NativeRoutingCIDR, at+".ipv4NativeRoutingCIDR", "IPv4", "10.0.0.0/8")...)
	problems = append(problems, routedBlockProblems(cilium.IPv6NativeRoutingCIDR, at+".ipv6NativeRoutingCIDR", "IPv6", "fd00::/8")...)
	return append(problems, ownValuesProblems(cilium, at+".helmValues")...)
}

func routedBlockProblems(block, at, family, example string) Violations {
	if block == "" {
		return nil
	}
	if parsed, err := netip.ParsePrefix(block); err == nil && parsed.Addr().Is4() == (family == "IPv4") {
		return nil
	}
	return violation(at, "use a block such as "+example, "%q is not an %s block", printable(block), family)
}

func ownValuesProblems(cilium *anywherev1.CiliumConfig, at string) Violations {
	if cilium.HelmValues == nil || len(cilium.HelmValues.Raw) == 0 {
		return nil
	}
	var values map[string]any
	switch err := json.Unmarshal(cilium.HelmValues.Raw, &values); {
	case err != nil:
		return violation(at, "write it as an object such as {hubble: {enabled: true}}", "is not an object")
	case len(cilium.HelmValues.Raw) > maxHelmValues:
		return violation(at, "write values of this size into the HelmChartProxy, or into a ConfigMap for its valuesFrom", "has %d bytes, more than %d", len(cilium.HelmValues.Raw), maxHelmValues)
	}
	return nil
}
