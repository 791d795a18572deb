package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// PacketMachineTemplateSpec holds the machine to make copies of.
type PacketMachineTemplateSpec struct {
	// template is that machine.
	// +required
	Template PacketMachineTemplateResource `json:"template"`
}

// PacketMachineTemplateResource is a PacketMachine without a name.
type PacketMachineTemplateResource struct {
	// metadata holds labels and annotations for the machines.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is that of the machines.
	// +required
	Spec PacketMachineSpec `json:"spec"`
}

// PacketMachineTemplateStatus tells what a machine of the template will offer, for autoscaling from zero.
type PacketMachineTemplateStatus struct {
	// machineType is the plan that the rest of the status is about.
	// +optional
	MachineType string `json:"machineType,omitempty"`

	// capacity is what a node on such a machine has.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// nodeInfo is what such a node runs on.
	// +optional
	NodeInfo NodeInfo `json:"nodeInfo,omitempty,omitzero"`
}

// NodeInfo is what a node runs on.
type NodeInfo struct {
	// architecture is that of the processors.
	// +optional
	// +kubebuilder:validation:Enum=amd64;arm64
	Architecture string `json:"architecture,omitempty"`

	// operatingSystem is linux.
	// +optional
	OperatingSystem string `json:"operatingSystem,omitempty"`
}

// PacketMachineTemplate is what the machines of a control plane or a MachineDeployment are made from. Its spec can't be changed: make a
// new template and refer to that.
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

	// spec is what is wanted.
	// +optional
	Spec PacketMachineTemplateSpec `json:"spec,omitempty"`

	// status is what is known of the plan.
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

// PacketClusterTemplateSpec holds the cluster to make copies of.
type PacketClusterTemplateSpec struct {
	// template is that cluster.
	// +required
	Template PacketClusterTemplateResource `json:"template"`
}

// PacketClusterTemplateResource is a PacketCluster without a name.
type PacketClusterTemplateResource struct {
	// metadata holds labels and annotations for the clusters.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is that of the clusters.
	// +required
	Spec PacketClusterSpec `json:"spec"`
}

// PacketClusterTemplate is what a ClusterClass makes PacketClusters from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=packetclustertemplates,scope=Namespaced,shortName=pct,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Metro",type="string",JSONPath=".spec.template.spec.metro",description="Metro of the clusters"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type PacketClusterTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
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
