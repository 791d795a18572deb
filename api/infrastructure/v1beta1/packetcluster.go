package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterFinalizer stays on a PacketCluster until its address is released.
const ClusterFinalizer = "packetcluster.infrastructure.cluster.x-k8s.io"

// APIServerPort is the port of every control plane endpoint that Drover provides.
const APIServerPort = 6443

// VIPManagerType selects who keeps the control plane endpoint reachable.
// +kubebuilder:validation:Enum=CPEM;KUBE_VIP;EMLB
type VIPManagerType string

// The three VIP managers.
const (
	// VIPManagerCPEM keeps an elastic address on a healthy control plane machine. It is named after
	// the in-cluster agent that once did this.
	VIPManagerCPEM VIPManagerType = "CPEM"
	// VIPManagerKubeVIP lets kube-vip on the machines announce the elastic address with BGP.
	VIPManagerKubeVIP VIPManagerType = "KUBE_VIP"
	// VIPManagerEMLB is the load balancer service of Equinix Metal, which was shut down. The user
	// must provide an endpoint.
	VIPManagerEMLB VIPManagerType = "EMLB"
)

// AddressReclaimPolicy decides what happens to the elastic address when its cluster is deleted.
// +kubebuilder:validation:Enum=Release;Retain
type AddressReclaimPolicy string

// The two policies.
const (
	AddressRelease AddressReclaimPolicy = "Release"
	AddressRetain  AddressReclaimPolicy = "Retain"
)

// PacketClusterSpec is the desired infrastructure of a cluster.
type PacketClusterSpec struct {
	// projectID is the project of the cluster's devices and addresses. It is immutable.
	// +required
	ProjectID string `json:"projectID"`

	// facility is the location of devices if metro is not set. Deprecated: use metro.
	// +optional
	Facility string `json:"facility,omitempty"`

	// metro is the location of devices. It takes precedence over facility.
	// +optional
	Metro string `json:"metro,omitempty"`

	// controlPlaneEndpoint is the endpoint of the cluster's API server. Drover sets it to the
	// cluster's elastic address unless vipManager is EMLB.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// vipManager selects who keeps the endpoint reachable. It is immutable.
	// +kubebuilder:default=CPEM
	// +required
	VIPManager VIPManagerType `json:"vipManager,omitempty"`

	// credentialsRef references the Secret with the credentials for the project. By default, the
	// manager's credentials are used.
	// +optional
	CredentialsRef *CredentialsReference `json:"credentialsRef,omitempty"`

	// apiURL is the base URL of the Packet API. The URL belongs to the credentials: if set, it must
	// be the one in their Secret, or that of the manager.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://.+`
	APIURL string `json:"apiURL,omitempty"`

	// addressReclaimPolicy decides what happens to the elastic address when the cluster is deleted.
	// +kubebuilder:default=Release
	// +optional
	AddressReclaimPolicy AddressReclaimPolicy `json:"addressReclaimPolicy,omitempty"`

	// failureDomains are the metros that machines are spread over. A failure domain has the name of
	// its metro.
	// +optional
	// +listType=map
	// +listMapKey=metro
	// +kubebuilder:validation:MaxItems=64
	FailureDomains []PacketFailureDomain `json:"failureDomains,omitempty"`
}

// APIEndpoint is the host and port of an API server.
type APIEndpoint struct {
	// host is a name or an IP address.
	// +required
	Host string `json:"host"`

	// port is a TCP port.
	// +required
	Port int32 `json:"port"`
}

// IsZero reports whether the endpoint is not known yet.
func (e APIEndpoint) IsZero() bool { return e == APIEndpoint{} }

// IsValid reports whether the endpoint is complete.
func (e APIEndpoint) IsValid() bool { return e.Host != "" && e.Port != 0 }

// CredentialsReference references a Secret in the namespace of the cluster.
type CredentialsReference struct {
	// name of the Secret. The key PACKET_API_KEY contains the token, the optional keys METAL_API_URL
	// and METAL_API_CA the URL of the API and the only CA to trust.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// PacketFailureDomain is a metro for machines.
type PacketFailureDomain struct {
	// metro is the code of the metro.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Metro string `json:"metro"`

	// controlPlane allows control plane machines there. An elastic address can't leave its metro,
	// so with the VIP managers CPEM and KUBE_VIP only the cluster's own metro is allowed.
	// +optional
	ControlPlane *bool `json:"controlPlane,omitempty"`
}

// PacketCluster is the infrastructure of a cluster: its project, its location and its control plane
// endpoint.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=packetclusters,scope=Namespaced,shortName=pcl,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels.cluster\\.x-k8s\\.io/cluster-name",description="Cluster that this belongs to"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.ready",description="Whether machines can be created"
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=".spec.controlPlaneEndpoint.host",description="Address of the API server"
// +kubebuilder:printcolumn:name="Holder",type="string",JSONPath=".status.endpoint.machine",priority=1,description="Machine that holds the address"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type PacketCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec PacketClusterSpec `json:"spec,omitempty"`

	// status is the observed state.
	// +optional
	Status PacketClusterStatus `json:"status,omitempty,omitzero"`
}

// PacketClusterList is a list of PacketClusters.
//
// +kubebuilder:object:root=true
type PacketClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PacketCluster `json:"items"`
}
