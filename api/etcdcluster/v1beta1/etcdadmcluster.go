package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
)

// Finalizer stays on an EtcdadmCluster until its machines are gone and its addresses released.
const Finalizer = "etcdcluster.cluster.x-k8s.io"

// MemberLabel holds the EtcdadmCluster of a machine and its EtcdadmConfig.
const MemberLabel = "cluster.x-k8s.io/etcd-cluster"

// Annotations of an EtcdadmCluster.
const (
	// HealthCheckRetriesAnnotation is for how many half minutes a member may be unhealthy before it
	// is replaced; 0 disables the replacement. The default is 20.
	HealthCheckRetriesAnnotation = "etcdcluster.cluster.x-k8s.io/healthcheck-retries"
	// UpgradingAnnotation is set while members are replaced because the spec has changed.
	UpgradingAnnotation = "etcdcluster.cluster.x-k8s.io/upgrading"
	// InitializedAnnotation is set once etcd has formed, never to be bootstrapped again. Unlike the
	// status, it moves with the object to another management plane.
	InitializedAnnotation = "etcdcluster.cluster.x-k8s.io/initialized"
	// RenewMembersAnnotation is a time such as "2026-05-01T12:00:00Z": members whose certificates
	// were issued before are replaced one at a time.
	RenewMembersAnnotation = "etcdcluster.cluster.x-k8s.io/renew-members"
	// RenewClientAnnotation is such a time for the certificate of API servers, of which new ones get
	// a new one.
	RenewClientAnnotation = "etcdcluster.cluster.x-k8s.io/renew-client"
)

// Annotations of a PacketMachine that runs a member.
const (
	// SlotAnnotation is the slot of the member: one of the endpoints that never change.
	SlotAnnotation = "etcdcluster.cluster.x-k8s.io/slot"
	// AddressAnnotation is the address with which the member joined.
	AddressAnnotation = "etcdcluster.cluster.x-k8s.io/address"
	// ConfigAnnotation identifies the configuration that the machine was created from.
	ConfigAnnotation = "etcdcluster.cluster.x-k8s.io/config"
	// ExpiresAnnotation is when to replace the member because its certificate expires.
	ExpiresAnnotation = "etcdcluster.cluster.x-k8s.io/renew-at"
	// StartedAnnotation is set once the device was active. From then on, another device can't take
	// its place, since the data of the member is on it.
	StartedAnnotation = "etcdcluster.cluster.x-k8s.io/started"
)

// EtcdadmClusterSpec is the desired etcd.
type EtcdadmClusterSpec struct {
	// replicas is the number of members.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=7
	// +kubebuilder:validation:XValidation:rule="self % 2 == 1",message="etcd cluster cannot have an even number of nodes"
	Replicas *int32 `json:"replicas,omitempty"`

	// infrastructureTemplate is the PacketMachineTemplate of the machines, in the same namespace.
	// +required
	InfrastructureTemplate corev1.ObjectReference `json:"infrastructureTemplate"`

	// etcdadmConfigSpec configures the machines.
	// +optional
	EtcdadmConfigSpec etcdbootstrapv1.EtcdadmConfigSpec `json:"etcdadmConfigSpec,omitempty,omitzero"`
}

// EtcdadmClusterStatus is the observed state of etcd.
type EtcdadmClusterStatus struct {
	// replicas is the number of healthy members.
	// +optional
	ReadyReplicas int32 `json:"replicas,omitempty"`

	// initMachineAddress is the address of the first slot.
	// +optional
	InitMachineAddress string `json:"initMachineAddress"`

	// initialized reports whether etcd has formed.
	// +optional
	Initialized bool `json:"initialized"`

	// ready reports whether all members are healthy.
	// +optional
	Ready bool `json:"ready"`

	// creationComplete reports whether all members have been healthy once.
	// +optional
	CreationComplete bool `json:"creationComplete"`

	// endpoints are the URLs for clients, separated by commas. They change only with the number of
	// replicas.
	// +optional
	Endpoints string `json:"endpoints"`

	// selector selects the machines.
	// +optional
	Selector string `json:"selector,omitempty"`

	// members are the members of etcd.
	// +optional
	// +listType=map
	// +listMapKey=name
	Members []MemberStatus `json:"members,omitempty"`

	// certificates contains the last requests for new certificates that are complete.
	// +optional
	Certificates CertificatesStatus `json:"certificates,omitempty,omitzero"`

	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions describe the state; Ready summarizes the others.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CertificatesStatus contains times: all certificates were issued since.
type CertificatesStatus struct {
	// members is about those of members.
	// +optional
	Members *metav1.Time `json:"members,omitempty"`

	// client is about that of API servers.
	// +optional
	Client *metav1.Time `json:"client,omitempty"`
}

// MemberStatus is the state of a member.
type MemberStatus struct {
	// name of the machine, or the ID of a member without one.
	// +required
	Name string `json:"name"`

	// address that other members reach it at.
	// +optional
	Address string `json:"address,omitempty"`

	// role is leader, follower or learner.
	// +optional
	Role string `json:"role,omitempty"`

	// healthy reports whether it answers.
	// +optional
	Healthy bool `json:"healthy"`
}

// EtcdadmCluster is the external etcd of a Cluster, which its label cluster.x-k8s.io/cluster-name
// names.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=etcdadmclusters,scope=Namespaced,shortName=etcdcl,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels.cluster\\.x-k8s\\.io/cluster-name",description="Cluster that this belongs to"
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".spec.replicas",description="Members wanted"
// +kubebuilder:printcolumn:name="Healthy",type="integer",JSONPath=".status.replicas",description="Healthy members"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether all members are healthy and up to date"
// +kubebuilder:printcolumn:name="Message",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type EtcdadmCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	Spec EtcdadmClusterSpec `json:"spec,omitempty"`

	// status is the observed state.
	// +optional
	Status EtcdadmClusterStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (c *EtcdadmCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *EtcdadmCluster) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// EtcdadmClusterList is a list of EtcdadmClusters.
//
// +kubebuilder:object:root=true
type EtcdadmClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdadmCluster `json:"items"`
}
