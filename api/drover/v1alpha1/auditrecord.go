package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AuditAction is an action on a Cluster.
// +kubebuilder:validation:Enum=Created;Upgraded;Scaled;Changed;Paused;Resumed;Deleted;Evicted
type AuditAction string

// Actions in order of precedence: a change of the version is an upgrade, whatever else changed.
const (
	Created  AuditAction = "Created"
	Upgraded AuditAction = "Upgraded"
	Scaled   AuditAction = "Scaled"
	Changed  AuditAction = "Changed"
	// Paused and Resumed are changes of the annotation that pauses reconciliation.
	Paused  AuditAction = "Paused"
	Resumed AuditAction = "Resumed"
	Deleted AuditAction = "Deleted"
	// Evicted counts older records that were deleted because there were too many.
	Evicted AuditAction = "Evicted"
)

// Labels of AuditRecords.
const (
	ClusterLabel   = "audit.drover.dev/cluster"
	NamespaceLabel = "audit.drover.dev/namespace"
	// EvictedLabel has the value "true" on records with the action Evicted that stand for deleted
	// records. On those for changes that were never recorded, which only earlier versions wrote, it
	// is the number of changes.
	EvictedLabel = "audit.drover.dev/evicted"
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
	// sequence numbers the recorded changes of the Cluster itself.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// object is the changed config, if not the Cluster itself was changed.
	// +optional
	Object *AuditedObject `json:"object,omitempty"`
	// evicted is the number of older records that were deleted so far.
	// +optional
	Evicted int64 `json:"evicted,omitempty"`
	// evictedThrough is the last of them, as time/name.
	// +optional
	EvictedThrough string `json:"evictedThrough,omitempty"`
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

// AuditedObject is a config that a Cluster references.
type AuditedObject struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
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
