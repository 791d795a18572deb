package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AuditAction is what was done to a cluster.
// +kubebuilder:validation:Enum=Created;Upgraded;Scaled;Changed;Deleted
type AuditAction string

// Actions, the more telling one first: a change of version is an upgrade, whatever else changed with it.
const (
	Created  AuditAction = "Created"
	Upgraded AuditAction = "Upgraded"
	Scaled   AuditAction = "Scaled"
	Changed  AuditAction = "Changed"
	Deleted  AuditAction = "Deleted"
)

// Labels of records.
const (
	ClusterLabel   = "audit.drover.dev/cluster"
	NamespaceLabel = "audit.drover.dev/namespace"
)

// AuditRecordSpec is one thing that somebody asked for. It outlives the cluster.
type AuditRecordSpec struct {
	// cluster is what it was done to.
	Cluster AuditedCluster `json:"cluster"`
	Action  AuditAction    `json:"action"`
	// user is who asked, as the API server knows them.
	User string `json:"user"`
	// groups are those of the user.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// time is when it was asked for.
	Time metav1.MicroTime `json:"time"`
	// generation is that of the cluster's spec from then on.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// changes are the fields that became different.
	// +optional
	// +listType=atomic
	Changes []AuditedChange `json:"changes,omitempty"`
}

// AuditedCluster is a Cluster, which may be gone.
type AuditedCluster struct {
	Name      string    `json:"name"`
	Namespace string    `json:"namespace"`
	UID       types.UID `json:"uid"`
}

// AuditedChange is a field of a Cluster that became different. Values are told where they are versions or numbers; others may hold secrets.
type AuditedChange struct {
	// path is that of the field, such as spec.kubernetesVersion.
	Path string `json:"path"`
	// +optional
	From string `json:"from,omitempty"`
	// +optional
	To string `json:"to,omitempty"`
}

// AuditRecord says who did what to which cluster, and when. Nobody changes one.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=auditrecords,scope=Cluster,singular=auditrecord
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Time",type=date,JSONPath=".spec.time"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=".spec.cluster.name"
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=".spec.action"
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=".spec.user"
type AuditRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a record is never changed"
	Spec AuditRecordSpec `json:"spec"`
}

// AuditRecordList is a list of them.
//
// +kubebuilder:object:root=true
type AuditRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AuditRecord `json:"items"`
}
