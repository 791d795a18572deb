package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// ClusterNetwork is the network of Pods and services. Everything except cniConfig is immutable.
type ClusterNetwork struct {
	// pods is one CIDR block, 192.168.0.0/16 by default.
	// +optional
	Pods Pods `json:"pods,omitempty,omitzero"`
	// services is one CIDR block, 10.96.0.0/12 by default.
	// +optional
	Services Services `json:"services,omitempty,omitzero"`
	// cni is cilium or kindnetd. Deprecated: use cniConfig.
	// +optional
	CNI string `json:"cni,omitempty"`
	// +optional
	CNIConfig *CNIConfig `json:"cniConfig,omitempty"`
	// +optional
	DNS DNS `json:"dns,omitempty,omitzero"`
	// +optional
	Nodes *Nodes `json:"nodes,omitempty"`
}

// Values of cni.
const (
	CiliumCNI   = "cilium"
	KindnetdCNI = "kindnetd"
)

// Pods is the range of Pod addresses.
type Pods struct {
	// +optional
	// +listType=atomic
	CidrBlocks []string `json:"cidrBlocks,omitempty"`
}

// Services is the range of service addresses.
type Services struct {
	// +optional
	// +listType=atomic
	CidrBlocks []string `json:"cidrBlocks,omitempty"`
}

// DNS configures name resolution.
type DNS struct {
	// +optional
	ResolvConf *ResolvConf `json:"resolvConf,omitempty"`
}

// ResolvConf is a file on machines.
type ResolvConf struct {
	// path is the file that Pods get as /etc/resolv.conf.
	// +optional
	Path string `json:"path,omitempty"`
}

// Nodes configures the Pod blocks of nodes.
type Nodes struct {
	// cidrMaskSize is the prefix length of the Pod block of each node, 24 by default.
	// +optional
	CIDRMaskSize *int `json:"cidrMaskSize,omitempty"`
}

// CNIConfig selects the Pod network. Both fields select the one of Drover.
type CNIConfig struct {
	// +optional
	Cilium *CiliumConfig `json:"cilium,omitempty"`
	// kindnetd is for local machines only.
	// +optional
	Kindnetd *KindnetdConfig `json:"kindnetd,omitempty"`
}

// KindnetdConfig has no settings.
type KindnetdConfig struct{}

// CiliumPolicyEnforcementMode is how network policies are enforced.
type CiliumPolicyEnforcementMode string

// Policy enforcement modes.
const (
	CiliumPolicyModeDefault CiliumPolicyEnforcementMode = "default"
	CiliumPolicyModeAlways  CiliumPolicyEnforcementMode = "always"
	CiliumPolicyModeNever   CiliumPolicyEnforcementMode = "never"
)

// CiliumRoutingMode is how packets are routed between nodes.
type CiliumRoutingMode string

// Routing modes.
const (
	CiliumRoutingModeOverlay CiliumRoutingMode = "overlay"
	CiliumRoutingModeDirect  CiliumRoutingMode = "direct"
)

// CiliumConfig contains settings of Cilium. Those that the Pod network of Drover does not support
// are rejected, unless the user installs Cilium: then they are handed on to its chart.
type CiliumConfig struct {
	// policyEnforcementMode is default, always or never.
	// +optional
	PolicyEnforcementMode CiliumPolicyEnforcementMode `json:"policyEnforcementMode,omitempty"`
	// egressMasqueradeInterfaces is for the Cilium that the user installs, with skipUpgrade.
	// +optional
	EgressMasqueradeInterfaces string `json:"egressMasqueradeInterfaces,omitempty"`
	// skipUpgrade disables the installation and upgrades of the Pod network.
	// +optional
	SkipUpgrade *bool `json:"skipUpgrade,omitempty"`
	// routingMode is overlay or direct.
	// +optional
	RoutingMode CiliumRoutingMode `json:"routingMode,omitempty"`
	// ipv4NativeRoutingCIDR is for the Cilium that the user installs, with skipUpgrade.
	// +optional
	IPv4NativeRoutingCIDR string `json:"ipv4NativeRoutingCIDR,omitempty"`
	// ipv6NativeRoutingCIDR is for the Cilium that the user installs, with skipUpgrade.
	// +optional
	IPv6NativeRoutingCIDR string `json:"ipv6NativeRoutingCIDR,omitempty"`
	// cniExclusive is for the Cilium that the user installs, with skipUpgrade.
	// +optional
	CNIExclusive *bool `json:"cniExclusive,omitempty"`
	// helmValues are values of the chart of the Pod network: image, resources, confDir. Others are
	// rejected. With skipUpgrade, they are any values of the chart of Cilium.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	HelmValues *runtime.RawExtension `json:"helmValues,omitempty"`
}

// IsSkipUpgrade reports whether Drover does not manage the Pod network.
func (c *Cluster) IsSkipUpgrade() bool {
	cni := c.Spec.ClusterNetwork.CNIConfig
	return cni != nil && cni.Cilium != nil && cni.Cilium.SkipUpgrade != nil && *cni.Cilium.SkipUpgrade
}
