package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ControlPlaneConfiguration configures the control plane.
type ControlPlaneConfiguration struct {
	// count is the number of control plane machines. It must be odd, unless etcd is external.
	// +optional
	Count int `json:"count,omitempty"`
	// endpoint is the address of the API servers. It is immutable.
	// +optional
	Endpoint *Endpoint `json:"endpoint,omitempty"`
	// machineGroupRef references the machine config. Local machines have none.
	// +optional
	MachineGroupRef *Ref `json:"machineGroupRef,omitempty"`
	// taints replace the default taint of control plane nodes.
	// +optional
	// +listType=atomic
	Taints []corev1.Taint `json:"taints,omitempty"`
	// labels of the nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	UpgradeRolloutStrategy *ControlPlaneUpgradeRolloutStrategy `json:"upgradeRolloutStrategy,omitempty"`
	// skipLoadBalancerDeployment is not supported.
	// +optional
	SkipLoadBalancerDeployment bool `json:"skipLoadBalancerDeployment,omitempty"`
	// certSans are additional names and addresses in the certificates of API servers.
	// +optional
	// +listType=atomic
	CertSANs []string `json:"certSans,omitempty"`
	// +optional
	MachineHealthCheck *MachineHealthCheck `json:"machineHealthCheck,omitempty"`
	// apiServerExtraArgs are flags of API servers.
	// +optional
	APIServerExtraArgs map[string]string `json:"apiServerExtraArgs,omitempty"`
	// kubeletConfiguration is a KubeletConfiguration of kubelet.config.k8s.io/v1beta1, or part of
	// one.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	KubeletConfiguration *runtime.RawExtension `json:"kubeletConfiguration,omitempty"`
	// auditPolicyContent is a Policy of audit.k8s.io/v1, as YAML. The default records metadata.
	// +optional
	AuditPolicyContent string `json:"auditPolicyContent,omitempty"`
	// skipAdmissionForSystemResources is not supported.
	// +optional
	SkipAdmissionForSystemResources *bool `json:"skipAdmissionForSystemResources,omitempty"`
}

// Endpoint is the address of the API servers.
type Endpoint struct {
	// host is an IP address or a host name.
	Host string `json:"host"`
}

// UpgradeRolloutStrategyType is how machines are upgraded.
type UpgradeRolloutStrategyType string

// Upgrade strategies.
const (
	// RollingUpdateStrategyType replaces machines.
	RollingUpdateStrategyType UpgradeRolloutStrategyType = "RollingUpdate"
	// InPlaceStrategyType upgrades machines one at a time without replacing them.
	InPlaceStrategyType UpgradeRolloutStrategyType = "InPlace"
)

// ControlPlaneUpgradeRolloutStrategy configures upgrades of the control plane.
type ControlPlaneUpgradeRolloutStrategy struct {
	// type is RollingUpdate, which replaces machines, or InPlace.
	// +optional
	Type UpgradeRolloutStrategyType `json:"type,omitempty"`
	// +optional
	RollingUpdate *ControlPlaneRollingUpdateParams `json:"rollingUpdate,omitempty"`
}

// ControlPlaneRollingUpdateParams configures the replacement of control plane machines.
type ControlPlaneRollingUpdateParams struct {
	// maxSurge is the number of additional machines during an upgrade, 0 or 1.
	MaxSurge int `json:"maxSurge"`
}

// WorkerNodeGroupConfiguration configures a group of workers.
type WorkerNodeGroupConfiguration struct {
	// name is md-0 by default for the first group.
	// +optional
	Name string `json:"name,omitempty"`
	// count is 1 by default, or minCount of autoscalingConfiguration.
	// +optional
	Count *int `json:"count,omitempty"`
	// autoscalingConfiguration allows the cluster autoscaler to change the count.
	// +optional
	AutoScalingConfiguration *AutoScalingConfiguration `json:"autoscalingConfiguration,omitempty"`
	// machineGroupRef references the machine config. Local machines have none.
	// +optional
	MachineGroupRef *Ref `json:"machineGroupRef,omitempty"`
	// kubernetesVersion is that of the cluster by default. It may be up to two minor versions
	// older.
	// +optional
	KubernetesVersion *string `json:"kubernetesVersion,omitempty"`
	// taints of the nodes.
	// +optional
	// +listType=atomic
	Taints []corev1.Taint `json:"taints,omitempty"`
	// labels of the nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	UpgradeRolloutStrategy *WorkerNodesUpgradeRolloutStrategy `json:"upgradeRolloutStrategy,omitempty"`
	// +optional
	MachineHealthCheck *MachineHealthCheck `json:"machineHealthCheck,omitempty"`
	// kubeletConfiguration is a KubeletConfiguration of kubelet.config.k8s.io/v1beta1, or part of
	// one.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	KubeletConfiguration *runtime.RawExtension `json:"kubeletConfiguration,omitempty"`
	// failureDomains is the metro of the machines, at most one. The default is the location of the
	// PacketDatacenterConfig. Local machines have none.
	// +optional
	// +listType=atomic
	FailureDomains []string `json:"failureDomains,omitempty"`
}

// AutoScalingConfiguration bounds the number of workers for the cluster autoscaler.
type AutoScalingConfiguration struct {
	// +optional
	MinCount int `json:"minCount,omitempty"`
	// +optional
	MaxCount int `json:"maxCount,omitempty"`
}

// WorkerNodesUpgradeRolloutStrategy configures upgrades of workers.
type WorkerNodesUpgradeRolloutStrategy struct {
	// type is RollingUpdate, which replaces machines, or InPlace.
	// +optional
	Type UpgradeRolloutStrategyType `json:"type,omitempty"`
	// +optional
	RollingUpdate *WorkerNodesRollingUpdateParams `json:"rollingUpdate,omitempty"`
}

// WorkerNodesRollingUpdateParams configures the replacement of workers. At least one field must be
// positive.
type WorkerNodesRollingUpdateParams struct {
	// maxSurge is the number of additional machines during an upgrade.
	MaxSurge int `json:"maxSurge"`
	// maxUnavailable is the number of missing machines during an upgrade.
	MaxUnavailable int `json:"maxUnavailable"`
}

// ExternalEtcdConfiguration configures the machines of external etcd.
type ExternalEtcdConfiguration struct {
	// count is the number of members: 1, 3, 5 or 7.
	// +optional
	Count int `json:"count,omitempty"`
	// machineGroupRef references the machine config. Local machines have none.
	// +optional
	MachineGroupRef *Ref `json:"machineGroupRef,omitempty"`
}

// MachineHealthCheck configures when machines are replaced.
type MachineHealthCheck struct {
	// nodeStartupTimeout is the maximum time until a new machine has a node, 10 minutes by default.
	// +optional
	NodeStartupTimeout *metav1.Duration `json:"nodeStartupTimeout,omitempty"`
	// unhealthyMachineTimeout is how long a node may be unhealthy, 5 minutes by default.
	// +optional
	UnhealthyMachineTimeout *metav1.Duration `json:"unhealthyMachineTimeout,omitempty"`
	// maxUnhealthy is the number or percentage of unhealthy machines above which none is replaced:
	// 100% of the control plane and 40% of a worker group by default.
	// +optional
	MaxUnhealthy *intstr.IntOrString `json:"maxUnhealthy,omitempty"`
}
