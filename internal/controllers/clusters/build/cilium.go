package build

import (
	"encoding/json"
	"fmt"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// ciliumValues returns the settings of Cilium as values for its chart, for the HelmChartProxy with
// which the user installs it, or an empty string if there are none. The values in helmValues take
// precedence.
func ciliumValues(c *anywherev1.Cluster) (string, error) {
	if !c.IsSkipUpgrade() {
		return "", nil
	}
	cilium := c.Spec.ClusterNetwork.CNIConfig.Cilium
	values := map[string]any{}
	for key, value := range map[string]string{
		"policyEnforcementMode": string(cilium.PolicyEnforcementMode), "egressMasqueradeInterfaces": cilium.EgressMasqueradeInterfaces,
		"ipv4NativeRoutingCIDR": cilium.IPv4NativeRoutingCIDR, "ipv6NativeRoutingCIDR": cilium.IPv6NativeRoutingCIDR,
	} {
		if value != "" {
			values[key] = value
		}
	}
	switch cilium.RoutingMode {
	case anywherev1.CiliumRoutingModeDirect:
		values["routingMode"], values["autoDirectNodeRoutes"] = "native", true
	case anywherev1.CiliumRoutingModeOverlay:
		values["routingMode"] = "tunnel"
	}
	if cilium.CNIExclusive != nil {
		values["cni"] = map[string]any{"exclusive": *cilium.CNIExclusive}
	}
	if own := cilium.HelmValues; own != nil && len(own.Raw) > 0 {
		if err := json.Unmarshal(own.Raw, &values); err != nil {
			return "", fmt.Errorf("decoding helmValues: %w", err)
		}
	}
	if len(values) == 0 {
		return "", nil
	}
	text, err := json.Marshal(values)
	return string(text), err
}
