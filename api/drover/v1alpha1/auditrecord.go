package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AuditAction is an action on a Cluster.
// +kubebuilder:validation:Enum=Created;Upgraded;Scaled;Changed;Deleted
type AuditAction string

// Actions in order of precedence: a change of the version is an upgrade, whatever else changed.
const (
	Created  AuditAction = "Created"
	Upgraded AuditAction = "Upgraded"
	Scaled   AuditAction = "Scaled"
	Changed  AuditAction = "Changed"
	Deleted  AuditAction = "Deleted"
)

// Labels of AuditRecords.
const (
	ClusterLabel   = "audit.drover.dev/cluster"
	NamespaceLabel = "audit.drover.dev/namespace"
)

// AuditRecordSpec is one change. It outlives the cluster.
type AuditRecordSpec struct {
	// cluster is the changed Cluster.
	Cluster AuditedCluster `json:"cluster"`
	Action  AuditAction    `json:"action"`
	// user is the authenticated user.
	User string `json:"user"`
	// groups of the user.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// time of the request.
	Time metav1.MicroTime `json:"time"`
	// generation of the Cluster after the change.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// changes are the changed fields.
	// +optional
	// +listType=atomic
	Changes []AuditedChange `json:"changes,omitempty"`
}

// AuditedCluster identifies a Cluster, which may be deleted.
type AuditedCluster struct {
	Name      string    `json:"name"`
	Namespace string    `json:"namespace"`
	UID       types.UID `json:"uid"`
}

// AuditedChange is a changed field of a Cluster. It contains the values of versions and counts;
// others may be secret.
type AuditedChange struct {
	// path of the field, such as spec.kubernetesVersion.
	Path string `json:"path"`
	// +optional
	From string `json:"from,omitempty"`
	// +optional
	To string `json:"to,omitempty"`
}

// AuditRecord records who changed which cluster, and when. It is immutable.
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

// AuditRecordList is a list of AuditRecords.
//
// +kubebuilder:object:root=true
type AuditRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AuditRecord `json:"items"`
}
