package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// ClusterNetwork is the network of pods and services. None of it but cniConfig can be changed.
type ClusterNetwork struct {
	// pods is one block, 192.168.0.0/16 by default.
	// +optional
	Pods Pods `json:"pods,omitempty,omitzero"`
	// services is one block, 10.96.0.0/12 by default.
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

// Names of networks in cni.
const (
	CiliumCNI   = "cilium"
	KindnetdCNI = "kindnetd"
)

// Pods is where pods get addresses from.
type Pods struct {
	// +optional
	// +listType=atomic
	CidrBlocks []string `json:"cidrBlocks,omitempty"`
}

// Services is where services get addresses from.
type Services struct {
	// +optional
	// +listType=atomic
	CidrBlocks []string `json:"cidrBlocks,omitempty"`
}

// DNS is how names are resolved on machines.
type DNS struct {
	// +optional
	ResolvConf *ResolvConf `json:"resolvConf,omitempty"`
}

// ResolvConf is a file on machines.
type ResolvConf struct {
	// path is what kubelets give to pods as /etc/resolv.conf.
	// +optional
	Path string `json:"path,omitempty"`
}

// Nodes is how the pod network is divided.
type Nodes struct {
	// cidrMaskSize is the size of the block that each node gets, 24 by default.
	// +optional
	CIDRMaskSize *int `json:"cidrMaskSize,omitempty"`
}

// CNIConfig is the network that pods get. Either stands for the one that Drover ships.
type CNIConfig struct {
	// +optional
	Cilium *CiliumConfig `json:"cilium,omitempty"`
	// kindnetd is for local machines only.
	// +optional
	Kindnetd *KindnetdConfig `json:"kindnetd,omitempty"`
}

// KindnetdConfig has nothing to set.
type KindnetdConfig struct{}

// CiliumPolicyEnforcementMode is what becomes of traffic that no network policy is about.
type CiliumPolicyEnforcementMode string

// Modes of enforcement.
const (
	CiliumPolicyModeDefault CiliumPolicyEnforcementMode = "default"
	CiliumPolicyModeAlways  CiliumPolicyEnforcementMode = "always"
	CiliumPolicyModeNever   CiliumPolicyEnforcementMode = "never"
)

// CiliumRoutingMode is how packets go from node to node.
type CiliumRoutingMode string

// Modes of routing.
const (
	CiliumRoutingModeOverlay CiliumRoutingMode = "overlay"
	CiliumRoutingModeDirect  CiliumRoutingMode = "direct"
)

// CiliumConfig are settings of Cilium. Those that the network that Drover ships does not have are refused.
type CiliumConfig struct {
	// policyEnforcementMode is default, always or never.
	// +optional
	PolicyEnforcementMode CiliumPolicyEnforcementMode `json:"policyEnforcementMode,omitempty"`
	// egressMasqueradeInterfaces is refused.
	// +optional
	EgressMasqueradeInterfaces string `json:"egressMasqueradeInterfaces,omitempty"`
	// skipUpgrade leaves the network to its user: Drover neither installs nor changes one.
	// +optional
	SkipUpgrade *bool `json:"skipUpgrade,omitempty"`
	// routingMode is overlay or direct.
	// +optional
	RoutingMode CiliumRoutingMode `json:"routingMode,omitempty"`
	// ipv4NativeRoutingCIDR goes with direct routing.
	// +optional
	IPv4NativeRoutingCIDR string `json:"ipv4NativeRoutingCIDR,omitempty"`
	// ipv6NativeRoutingCIDR goes with direct routing.
	// +optional
	IPv6NativeRoutingCIDR string `json:"ipv6NativeRoutingCIDR,omitempty"`
	// cniExclusive lets no other network configure pods.
	// +optional
	CNIExclusive *bool `json:"cniExclusive,omitempty"`
	// helmValues are values of the chart of the network that Drover ships: image, resources, confDir. Others are refused.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	HelmValues *runtime.RawExtension `json:"helmValues,omitempty"`
}

// IsSkipUpgrade says whether the network is left to its user.
func (c *Cluster) IsSkipUpgrade() bool {
	cni := c.Spec.ClusterNetwork.CNIConfig
	return cni != nil && cni.Cilium != nil && cni.Cilium.SkipUpgrade != nil && *cni.Cilium.SkipUpgrade
}
