package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ControlPlaneConfiguration is what the control planes are.
type ControlPlaneConfiguration struct {
	// count is odd, unless etcd has machines of its own.
	// +optional
	Count int `json:"count,omitempty"`
	// endpoint is where the API servers are reached. It can't be changed.
	// +optional
	Endpoint *Endpoint `json:"endpoint,omitempty"`
	// machineGroupRef names the machine config. Local machines have none.
	// +optional
	MachineGroupRef *Ref `json:"machineGroupRef,omitempty"`
	// taints take the place of the taint that control planes have by default.
	// +optional
	// +listType=atomic
	Taints []corev1.Taint `json:"taints,omitempty"`
	// labels of the nodes.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	UpgradeRolloutStrategy *ControlPlaneUpgradeRolloutStrategy `json:"upgradeRolloutStrategy,omitempty"`
	// skipLoadBalancerDeployment is refused.
	// +optional
	SkipLoadBalancerDeployment bool `json:"skipLoadBalancerDeployment,omitempty"`
	// certSans are further names and addresses in the certificates of API servers.
	// +optional
	// +listType=atomic
	CertSANs []string `json:"certSans,omitempty"`
	// +optional
	MachineHealthCheck *MachineHealthCheck `json:"machineHealthCheck,omitempty"`
	// apiServerExtraArgs are flags of API servers.
	// +optional
	APIServerExtraArgs map[string]string `json:"apiServerExtraArgs,omitempty"`
	// kubeletConfiguration is a KubeletConfiguration of kubelet.config.k8s.io/v1beta1, or part of one.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	KubeletConfiguration *runtime.RawExtension `json:"kubeletConfiguration,omitempty"`
	// auditPolicyContent is a Policy of audit.k8s.io/v1, as YAML. There is one by default.
	// +optional
	AuditPolicyContent string `json:"auditPolicyContent,omitempty"`
	// skipAdmissionForSystemResources is refused.
	// +optional
	SkipAdmissionForSystemResources *bool `json:"skipAdmissionForSystemResources,omitempty"`
}

// Endpoint is an address.
type Endpoint struct {
	// host is an address, or a name that has one.
	Host string `json:"host"`
}

// UpgradeRolloutStrategyType is how machines are upgraded.
type UpgradeRolloutStrategyType string

// Ways to upgrade machines.
const (
	// RollingUpdateStrategyType replaces them.
	RollingUpdateStrategyType UpgradeRolloutStrategyType = "RollingUpdate"
	// InPlaceStrategyType is refused.
	InPlaceStrategyType UpgradeRolloutStrategyType = "InPlace"
)

// ControlPlaneUpgradeRolloutStrategy is how control planes are upgraded.
type ControlPlaneUpgradeRolloutStrategy struct {
	// type is RollingUpdate.
	// +optional
	Type UpgradeRolloutStrategyType `json:"type,omitempty"`
	// +optional
	RollingUpdate *ControlPlaneRollingUpdateParams `json:"rollingUpdate,omitempty"`
}

// ControlPlaneRollingUpdateParams is how control planes are replaced.
type ControlPlaneRollingUpdateParams struct {
	// maxSurge is how many more there may be meanwhile, 0 or 1.
	MaxSurge int `json:"maxSurge"`
}

// WorkerNodeGroupConfiguration is a group of workers.
type WorkerNodeGroupConfiguration struct {
	// name is md-0 by default for the first group.
	// +optional
	Name string `json:"name,omitempty"`
	// count is 1 by default, or the least of autoscalingConfiguration.
	// +optional
	Count *int `json:"count,omitempty"`
	// autoscalingConfiguration lets the cluster autoscaler change the count.
	// +optional
	AutoScalingConfiguration *AutoScalingConfiguration `json:"autoscalingConfiguration,omitempty"`
	// machineGroupRef names the machine config. Local machines have none.
	// +optional
	MachineGroupRef *Ref `json:"machineGroupRef,omitempty"`
	// kubernetesVersion is that of the cluster by default. It may be up to two minor versions behind.
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
	// kubeletConfiguration is a KubeletConfiguration of kubelet.config.k8s.io/v1beta1, or part of one.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	KubeletConfiguration *runtime.RawExtension `json:"kubeletConfiguration,omitempty"`
	// failureDomains is refused.
	// +optional
	// +listType=atomic
	FailureDomains []string `json:"failureDomains,omitempty"`
}

// AutoScalingConfiguration is between what numbers of workers the cluster autoscaler may choose.
type AutoScalingConfiguration struct {
	// +optional
	MinCount int `json:"minCount,omitempty"`
	// +optional
	MaxCount int `json:"maxCount,omitempty"`
}

// WorkerNodesUpgradeRolloutStrategy is how workers are upgraded.
type WorkerNodesUpgradeRolloutStrategy struct {
	// type is RollingUpdate.
	// +optional
	Type UpgradeRolloutStrategyType `json:"type,omitempty"`
	// +optional
	RollingUpdate *WorkerNodesRollingUpdateParams `json:"rollingUpdate,omitempty"`
}

// WorkerNodesRollingUpdateParams is how workers are replaced. One of the two is above 0.
type WorkerNodesRollingUpdateParams struct {
	// maxSurge is how many more there may be meanwhile.
	MaxSurge int `json:"maxSurge"`
	// maxUnavailable is how many fewer there may be meanwhile.
	MaxUnavailable int `json:"maxUnavailable"`
}

// ExternalEtcdConfiguration is what the machines of etcd are.
type ExternalEtcdConfiguration struct {
	// count is odd.
	// +optional
	Count int `json:"count,omitempty"`
	// machineGroupRef names the machine config. Local machines have none.
	// +optional
	MachineGroupRef *Ref `json:"machineGroupRef,omitempty"`
}

// MachineHealthCheck says when a machine is replaced.
type MachineHealthCheck struct {
	// nodeStartupTimeout is how long a machine may take to become a node, 10 minutes by default.
	// +optional
	NodeStartupTimeout *metav1.Duration `json:"nodeStartupTimeout,omitempty"`
	// unhealthyMachineTimeout is how long a node may be unready, 5 minutes by default.
	// +optional
	UnhealthyMachineTimeout *metav1.Duration `json:"unhealthyMachineTimeout,omitempty"`
	// maxUnhealthy is how many may be unhealthy for any to be replaced, a number or a percentage: 100% of control planes and 40% of a worker
	// group by default.
	// +optional
	MaxUnhealthy *intstr.IntOrString `json:"maxUnhealthy,omitempty"`
}
