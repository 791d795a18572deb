package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// PacketMachineTemplateSpec contains the template of machines.
type PacketMachineTemplateSpec struct {
	// template of the machines.
	// +required
	Template PacketMachineTemplateResource `json:"template"`
}

// PacketMachineTemplateResource is a PacketMachine without a name.
type PacketMachineTemplateResource struct {
	// metadata contains labels and annotations of the machines.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the machines.
	// +required
	Spec PacketMachineSpec `json:"spec"`
}

// PacketMachineTemplateStatus describes the resources of a machine of the template, for autoscaling
// from zero.
type PacketMachineTemplateStatus struct {
	// machineType is the plan that the status describes.
	// +optional
	MachineType string `json:"machineType,omitempty"`

	// capacity is the resources of a node on such a machine.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeInfo is the platform of such a node.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitempty,omitzero"`
}

// NodeInfo is the platform of a node.
type NodeInfo struct {
	// architecture of the processors.
	// +optional
	// +kubebuilder:validation:Enum=amd64;arm64
	Architecture string `json:"architecture,omitempty"`

	// operatingSystem is linux.
	// +optional
	OperatingSystem string `json:"operatingSystem,omitempty"`
}

// PacketMachineTemplate is the template of the machines of a control plane or a MachineDeployment.
// Its spec is immutable: create a new template and refer to that.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=packetmachinetemplates,scope=Namespaced,shortName=pmt,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".spec.template.spec.machineType",description="Plan of the devices"
// +kubebuilder:printcolumn:name="OS",type="string",JSONPath=".spec.template.spec.os",description="Operating system of the devices"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type PacketMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec PacketMachineTemplateSpec `json:"spec,omitempty"`

	// status describes the plan.
	// +optional
	Status PacketMachineTemplateStatus `json:"status,omitempty,omitzero"`
}

// PacketMachineTemplateList is a list of PacketMachineTemplates.
//
// +kubebuilder:object:root=true
type PacketMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PacketMachineTemplate `json:"items"`
}

// PacketClusterTemplateSpec contains the template of clusters.
type PacketClusterTemplateSpec struct {
	// template of the clusters.
	// +required
	Template PacketClusterTemplateResource `json:"template"`
}

// PacketClusterTemplateResource is a PacketCluster without a name.
type PacketClusterTemplateResource struct {
	// metadata contains labels and annotations of the clusters.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of the clusters.
	// +required
	Spec PacketClusterSpec `json:"spec"`
}

// PacketClusterTemplate is the template of the PacketClusters of a ClusterClass.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=packetclustertemplates,scope=Namespaced,shortName=pct,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Metro",type="string",JSONPath=".spec.template.spec.metro",description="Metro of the clusters"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type PacketClusterTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec PacketClusterTemplateSpec `json:"spec,omitempty"`
}

// PacketClusterTemplateList is a list of PacketClusterTemplates.
//
// +kubebuilder:object:root=true
type PacketClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PacketClusterTemplate `json:"items"`
}
