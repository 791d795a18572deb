package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterSpec is the desired state of a cluster.
type ClusterSpec struct {
	// kubernetesVersion is a minor version, such as "1.36". Drover chooses the patch version.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// management is true, or unset, for a management cluster, and false for a workload cluster. It
	// is immutable.
	// +optional
	Management *bool `json:"management,omitempty"`
	// managementCluster names the cluster that manages this one. A management cluster names itself.
	// It is immutable.
	// +optional
	ManagementCluster ManagementCluster `json:"managementCluster,omitempty,omitzero"`
	// +optional
	ControlPlaneConfiguration ControlPlaneConfiguration `json:"controlPlaneConfiguration,omitempty,omitzero"`
	// +optional
	// +listType=atomic
	WorkerNodeGroupConfigurations []WorkerNodeGroupConfiguration `json:"workerNodeGroupConfigurations,omitempty"`
	// datacenterRef references the source of machines. It is immutable.
	// +optional
	DatacenterRef Ref `json:"datacenterRef,omitempty,omitzero"`
	// +optional
	ClusterNetwork ClusterNetwork `json:"clusterNetwork,omitempty,omitzero"`
	// externalEtcdConfiguration runs etcd on machines of its own. It can't be added or removed later.
	// +optional
	ExternalEtcdConfiguration *ExternalEtcdConfiguration `json:"externalEtcdConfiguration,omitempty"`
	// identityProviderRefs references OIDCConfigs.
	// +optional
	// +listType=atomic
	IdentityProviderRefs []Ref `json:"identityProviderRefs,omitempty"`
	// gitOpsRef references a FluxConfig or a GitOpsConfig.
	// +optional
	GitOpsRef *Ref `json:"gitOpsRef,omitempty"`
	// proxyConfiguration is the proxy of machines.
	// +optional
	ProxyConfiguration *ProxyConfiguration `json:"proxyConfiguration,omitempty"`
	// registryMirrorConfiguration is the registry mirror of machines.
	// +optional
	RegistryMirrorConfiguration *RegistryMirrorConfiguration `json:"registryMirrorConfiguration,omitempty"`
	// machineHealthCheck configures when machines are replaced. The control plane and worker groups
	// can override it.
	// +optional
	MachineHealthCheck *MachineHealthCheck `json:"machineHealthCheck,omitempty"`
	// etcdEncryption encrypts resources with a key management service, which can only be set on an
	// existing cluster, or Secrets with a key of the cluster.
	// +optional
	// +listType=atomic
	EtcdEncryption []EtcdEncryption `json:"etcdEncryption,omitempty"`
	// packages configures curated packages.
	// +optional
	Packages *PackageConfiguration `json:"packages,omitempty"`
	// droverVersion is the version of Drover that a management cluster should run, such as v0.2.0.
	// Drover doesn't upgrade itself: the condition DroverUpToDate says what to do.
	// +optional
	DroverVersion string `json:"droverVersion,omitempty"`
	// eksaVersion is the version of the management components, such as v0.25.0.
	// +optional
	EksaVersion string `json:"eksaVersion,omitempty"`
	// bundlesRef is not supported. Deprecated: use eksaVersion.
	// +optional
	BundlesRef *BundlesRef `json:"bundlesRef,omitempty"`
	// podIamConfig makes API servers issue tokens that other systems can verify.
	// +optional
	PodIAMConfig *PodIAMConfig `json:"podIamConfig,omitempty"`
	// licenseToken has no effect.
	// +optional
	LicenseToken string `json:"licenseToken,omitempty"`
}

// Ref references an object of this API group in the namespace of the Cluster.
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

// BundlesRef references the components of a version.
type BundlesRef struct {
	APIVersion string `json:"apiVersion"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
}

// PodIAMConfig configures the identity of Pods outside of their cluster.
type PodIAMConfig struct {
	// serviceAccountIssuer is the issuer of service account tokens: an https:// URL under which the
	// public keys of the cluster are published.
	ServiceAccountIssuer string `json:"serviceAccountIssuer"`
}

// Cluster is a Kubernetes cluster on your own machines.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusters,scope=Namespaced,shortName=anc,singular=cluster
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether the cluster is ready"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=".status.version",description="Kubernetes version of all control plane machines"
// +kubebuilder:printcolumn:name="CP",type=string,JSONPath=".status.controlPlane",description="Ready and wanted control plane machines"
// +kubebuilder:printcolumn:name="Workers",type=string,JSONPath=".status.workers",description="Ready and wanted workers"
// +kubebuilder:printcolumn:name="Management",type=string,JSONPath=".spec.managementCluster.name",description="Cluster that manages this one"
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterSpec   `json:"spec,omitempty,omitzero"`
	Status ClusterStatus `json:"status,omitempty,omitzero"`
}

// IsSelfManaged reports whether it is a management cluster: as spec.management says, or, if that is
// unset, whether it names no other cluster.
func (c *Cluster) IsSelfManaged() bool {
	if c.Spec.Management != nil {
		return *c.Spec.Management
	}
	return c.Spec.ManagementCluster.Name == "" || c.Spec.ManagementCluster.Name == c.Name
}

// IsManaged reports whether it is a workload cluster.
func (c *Cluster) IsManaged() bool { return !c.IsSelfManaged() }

// ManagedBy returns the name of its management cluster, which may be itself. It is empty for a
// workload cluster that names none; the cluster that stores it manages it.
func (c *Cluster) ManagedBy() string {
	if c.IsSelfManaged() {
		return c.Name
	}
	return c.Spec.ManagementCluster.Name
}

// UsesEncryptionPlugin reports whether API servers need a plugin to encrypt resources.
func (c *Cluster) UsesEncryptionPlugin() bool {
	for _, e := range c.Spec.EtcdEncryption {
		if len(e.Providers) != 1 || e.Providers[0].Secretbox == nil {
			return true
		}
	}
	return false
}

// IsPaused reports whether reconciliation is paused.
func (c *Cluster) IsPaused() bool { return c.Annotations[PausedAnnotation] == "true" }

// IsManagedByCLI reports whether a command is operating on the cluster.
func (c *Cluster) IsManagedByCLI() bool { return c.Annotations[ManagedByCLIAnnotation] == "true" }

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Cluster `json:"items"`
}
