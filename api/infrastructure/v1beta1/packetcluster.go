package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterFinalizer stays on a PacketCluster until its address is released.
const ClusterFinalizer = "packetcluster.infrastructure.cluster.x-k8s.io"

// APIServerPort is the port of every control plane endpoint that Drover provides.
const APIServerPort = 6443

// VIPManagerType says who keeps the control plane endpoint reachable.
// +kubebuilder:validation:Enum=CPEM;KUBE_VIP;EMLB
type VIPManagerType string

// The three VIP managers.
const (
	// VIPManagerCPEM leaves it to Drover: an elastic address is kept on a healthy control plane machine. The name is that of the
	// in-cluster agent which once did this.
	VIPManagerCPEM VIPManagerType = "CPEM"
	// VIPManagerKubeVIP leaves it to kube-vip on the machines, which announces the elastic address by BGP.
	VIPManagerKubeVIP VIPManagerType = "KUBE_VIP"
	// VIPManagerEMLB is the load balancer service of Equinix Metal, which is gone. An endpoint of the user's own must be given.
	VIPManagerEMLB VIPManagerType = "EMLB"
)

// AddressReclaimPolicy says what becomes of the elastic address when its cluster is deleted.
// +kubebuilder:validation:Enum=Release;Retain
type AddressReclaimPolicy string

// The two policies.
const (
	AddressRelease AddressReclaimPolicy = "Release"
	AddressRetain  AddressReclaimPolicy = "Retain"
)

// PacketClusterSpec is what a user wants of a cluster's infrastructure.
type PacketClusterSpec struct {
	// projectID is the project that owns the devices and addresses of the cluster. It can't be changed.
	// +required
	ProjectID string `json:"projectID"`

	// facility is where devices are made if no metro is given. Deprecated: use metro.
	// +optional
	Facility string `json:"facility,omitempty"`

	// metro is where devices are made. It wins over facility.
	// +optional
	Metro string `json:"metro,omitempty"`

	// controlPlaneEndpoint is where the API server of the cluster is reached. It is filled in with the cluster's elastic address
	// unless vipManager is EMLB.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// vipManager says who keeps the endpoint reachable. It can't be changed.
	// +kubebuilder:default=CPEM
	// +required
	VIPManager VIPManagerType `json:"vipManager,omitempty"`

	// credentialsRef names the Secret with the credentials for the project. Without it the manager's own are used.
	// +optional
	CredentialsRef *CredentialsReference `json:"credentialsRef,omitempty"`

	// apiURL is the base URL of the Packet API. It wins over the URL in the credentials; without both, the manager's is used.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://.+`
	APIURL string `json:"apiURL,omitempty"`

	// addressReclaimPolicy says what becomes of the elastic address when the cluster is deleted.
	// +kubebuilder:default=Release
	// +optional
	AddressReclaimPolicy AddressReclaimPolicy `json:"addressReclaimPolicy,omitempty"`

	// failureDomains are the metros that machines may be spread over. The name of a failure domain is that of its metro.
	// +optional
	// +listType=map
	// +listMapKey=metro
	// +kubebuilder:validation:MaxItems=64
	FailureDomains []PacketFailureDomain `json:"failureDomains,omitempty"`
}

// APIEndpoint is an address and a port at which an API server is reached.
type APIEndpoint struct {
	// host is a name or an IP address.
	// +required
	Host string `json:"host"`

	// port is a TCP port.
	// +required
	Port int32 `json:"port"`
}

// IsZero says that no endpoint is known yet.
func (e APIEndpoint) IsZero() bool { return e == APIEndpoint{} }

// IsValid says that the endpoint can be connected to.
func (e APIEndpoint) IsValid() bool { return e.Host != "" && e.Port != 0 }

// CredentialsReference names a Secret in the namespace of the cluster.
type CredentialsReference struct {
	// name of the Secret. Its key PACKET_API_KEY holds the token, the optional key METAL_API_URL the URL of the API.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// PacketFailureDomain is a metro that machines may be put into.
type PacketFailureDomain struct {
	// metro is the code of the metro.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Metro string `json:"metro"`

	// controlPlane allows control plane machines there. An elastic address can't leave its metro, so with the VIP managers CPEM and
	// KUBE_VIP this is for the cluster's own metro only.
	// +optional
	ControlPlane *bool `json:"controlPlane,omitempty"`
}

// PacketCluster is the infrastructure of a cluster: its project, its location and its control plane endpoint.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=packetclusters,scope=Namespaced,shortName=pcl,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels.cluster\\.x-k8s\\.io/cluster-name",description="Cluster that this belongs to"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.ready",description="Whether machines can be made"
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=".spec.controlPlaneEndpoint.host",description="Address of the API server"
// +kubebuilder:printcolumn:name="Holder",type="string",JSONPath=".status.endpoint.machine",priority=1,description="Machine that holds the address"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type PacketCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec PacketClusterSpec `json:"spec,omitempty"`

	// status is what is there.
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
