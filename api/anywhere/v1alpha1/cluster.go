package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterSpec is the cluster that a user wants.
type ClusterSpec struct {
	// kubernetesVersion is a minor version, such as "1.36". The patch version is the one that this Drover ships.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// management says whether the cluster is one of management: it is if this is true or left out, and a workload cluster if it is false.
	// It can't be changed.
	// +optional
	Management *bool `json:"management,omitempty"`
	// managementCluster names the cluster that manages this one. One that manages itself gives its own name. It can't be changed.
	// +optional
	ManagementCluster ManagementCluster `json:"managementCluster,omitempty,omitzero"`
	// +optional
	ControlPlaneConfiguration ControlPlaneConfiguration `json:"controlPlaneConfiguration,omitempty,omitzero"`
	// +optional
	// +listType=atomic
	WorkerNodeGroupConfigurations []WorkerNodeGroupConfiguration `json:"workerNodeGroupConfigurations,omitempty"`
	// datacenterRef names where the machines come from. It can't be changed.
	// +optional
	DatacenterRef Ref `json:"datacenterRef,omitempty,omitzero"`
	// +optional
	ClusterNetwork ClusterNetwork `json:"clusterNetwork,omitempty,omitzero"`
	// externalEtcdConfiguration puts etcd on machines of its own. It can't be added or removed.
	// +optional
	ExternalEtcdConfiguration *ExternalEtcdConfiguration `json:"externalEtcdConfiguration,omitempty"`
	// identityProviderRefs names OIDCConfigs.
	// +optional
	// +listType=atomic
	IdentityProviderRefs []Ref `json:"identityProviderRefs,omitempty"`
	// gitOpsRef names a FluxConfig or a GitOpsConfig.
	// +optional
	GitOpsRef *Ref `json:"gitOpsRef,omitempty"`
	// proxyConfiguration is what machines go through to reach the outside.
	// +optional
	ProxyConfiguration *ProxyConfiguration `json:"proxyConfiguration,omitempty"`
	// registryMirrorConfiguration is where machines get images from instead.
	// +optional
	RegistryMirrorConfiguration *RegistryMirrorConfiguration `json:"registryMirrorConfiguration,omitempty"`
	// machineHealthCheck says when a machine is replaced. Control planes and worker groups may say otherwise.
	// +optional
	MachineHealthCheck *MachineHealthCheck `json:"machineHealthCheck,omitempty"`
	// etcdEncryption encrypts resources with a key management service. It can be set once the cluster is there.
	// +optional
	// +listType=atomic
	EtcdEncryption []EtcdEncryption `json:"etcdEncryption,omitempty"`
	// packages says what becomes of curated packages.
	// +optional
	Packages *PackageConfiguration `json:"packages,omitempty"`
	// eksaVersion is the version that the cluster is made with, such as v0.25.0.
	// +optional
	EksaVersion string `json:"eksaVersion,omitempty"`
	// bundlesRef is refused. Deprecated: use eksaVersion.
	// +optional
	BundlesRef *BundlesRef `json:"bundlesRef,omitempty"`
	// podIamConfig is refused.
	// +optional
	PodIAMConfig *PodIAMConfig `json:"podIamConfig,omitempty"`
	// licenseToken has no effect.
	// +optional
	LicenseToken string `json:"licenseToken,omitempty"`
}

// Ref names an object of this group, in the namespace of the Cluster.
type Ref struct {
	// +optional
	Kind string `json:"kind,omitempty"`
	// +optional
	Name string `json:"name,omitempty"`
}

// ManagementCluster names the cluster that manages another.
type ManagementCluster struct {
	// +optional
	Name string `json:"name,omitempty"`
}

// BundlesRef named a list of what a version consists of.
type BundlesRef struct {
	APIVersion string `json:"apiVersion"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
}

// PodIAMConfig gave pods roles of a cloud.
type PodIAMConfig struct {
	ServiceAccountIssuer string `json:"serviceAccountIssuer"`
}

// Cluster is a Kubernetes cluster on machines of one's own.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusters,scope=Namespaced,shortName=anc,singular=cluster
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether all of it is as wanted"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=".status.version",description="Version of Kubernetes that all control planes have"
// +kubebuilder:printcolumn:name="CP",type=string,JSONPath=".status.controlPlane",description="Control planes that are ready, of those that are wanted"
// +kubebuilder:printcolumn:name="Workers",type=string,JSONPath=".status.workers",description="Workers that are ready, of those that are wanted"
// +kubebuilder:printcolumn:name="Management",type=string,JSONPath=".spec.managementCluster.name",description="Cluster that manages this one"
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterSpec   `json:"spec,omitempty,omitzero"`
	Status ClusterStatus `json:"status,omitempty,omitzero"`
}

// IsSelfManaged says whether it is a management cluster. Management decides if it is set, and else whether another cluster is named.
func (c *Cluster) IsSelfManaged() bool {
	if c.Spec.Management != nil {
		return *c.Spec.Management
	}
	return c.Spec.ManagementCluster.Name == "" || c.Spec.ManagementCluster.Name == c.Name
}

// IsManaged says whether it is a workload cluster.
func (c *Cluster) IsManaged() bool { return !c.IsSelfManaged() }

// ManagedBy is the name of the cluster that manages it, which may be itself. It is empty for a workload cluster that does not name one; that
// is managed by the cluster that it is stored on.
func (c *Cluster) ManagedBy() string {
	if c.IsSelfManaged() {
		return c.Name
	}
	return c.Spec.ManagementCluster.Name
}

// IsPaused says whether nothing is to be done about the cluster.
func (c *Cluster) IsPaused() bool { return c.Annotations[PausedAnnotation] == "true" }

// IsManagedByCLI says whether a command is at work on the cluster.
func (c *Cluster) IsManagedByCLI() bool { return c.Annotations[ManagedByCLIAnnotation] == "true" }

// ClusterList is a list of them.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Cluster `json:"items"`
}
