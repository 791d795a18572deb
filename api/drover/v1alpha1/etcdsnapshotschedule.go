package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SnapshotsReady is the condition of an EtcdSnapshotSchedule: it can be followed, and the last
// snapshot that was due is saved.
const SnapshotsReady = "Ready"

// Reasons of that condition.
const (
	// SnapshotSavedReason: the last snapshot that was due is saved.
	SnapshotSavedReason = "Saved"
	// SnapshotScheduledReason: the first snapshot is not due yet.
	SnapshotScheduledReason = "Scheduled"
	// SnapshotRunningReason: a snapshot is being saved, and none was saved before.
	SnapshotRunningReason = "Saving"
	// SnapshotSuspendedReason: spec.suspend is set.
	SnapshotSuspendedReason = "Suspended"
	// SnapshotInvalidReason: the spec can't be followed. It is final until the spec changes.
	SnapshotInvalidReason = "Invalid"
	// SnapshotClusterMissingReason: the cluster doesn't exist, or is being deleted.
	SnapshotClusterMissingReason = "ClusterNotFound"
	// SnapshotSecretReason: the Secret with credentials of the storage can't be used.
	SnapshotSecretReason = "SecretNotUsable"
	// SnapshotFailedReason: etcd or the storage doesn't respond, or rejects something. It is retried.
	SnapshotFailedReason = "SnapshotFailed"
	// SnapshotPruneFailedReason: the snapshot is saved, but old ones can't be deleted.
	SnapshotPruneFailedReason = "PruneFailed"
)

// EtcdSnapshotScheduleSpec is when and where snapshots are saved.
type EtcdSnapshotScheduleSpec struct {
	// clusterName is the name of a Cluster of Cluster API in the same namespace. The clusters of specs
	// are in eksa-system.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClusterName string `json:"clusterName"`
	// schedule is when to save a snapshot, in UTC: five fields as in a crontab, or "@daily", "@hourly"
	// or "@every 6h". The shortest interval is five minutes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Schedule string `json:"schedule"`
	// location is a directory of the host that the manager runs on, oci://REGISTRY/REPOSITORY, or
	// s3://BUCKET/PREFIX.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Location string `json:"location"`
	// recipients are the age recipients that can decrypt the snapshots: public keys. Drover needs no
	// other.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=200
	Recipients []string `json:"recipients"`
	// keep is how many snapshots to keep; older ones are deleted. 0 keeps all.
	// +optional
	// +kubebuilder:default=7
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Keep *int32 `json:"keep,omitempty"`
	// secretRef names a Secret in the same namespace with credentials: username and password of a
	// registry, or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and optionally AWS_ENDPOINT_URL_S3 and
	// AWS_REGION; and optionally ca.crt.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// suspend pauses the schedule.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// SecretReference names a Secret in the same namespace.
type SecretReference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// EtcdSnapshotScheduleStatus is what became of the snapshots.
type EtcdSnapshotScheduleStatus struct {
	// lastSnapshot is the last snapshot that was saved.
	// +optional
	LastSnapshot *SavedSnapshot `json:"lastSnapshot,omitempty"`
	// lastAttemptTime is when a snapshot was last begun.
	// +optional
	LastAttemptTime *metav1.Time `json:"lastAttemptTime,omitempty"`
	// nextTime is when the next one is due.
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`
	// failures is how many attempts have failed since the last snapshot.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// SavedSnapshot is a snapshot in a storage.
type SavedSnapshot struct {
	// name is its time, under which drover etcd restore finds it.
	Name     string      `json:"name"`
	Time     metav1.Time `json:"time"`
	Location string      `json:"location"`
	// size of the archive in bytes.
	// +optional
	Size int64 `json:"size,omitempty"`
	// revision of etcd.
	// +optional
	Revision int64 `json:"revision,omitempty"`
}

// EtcdSnapshotSchedule saves encrypted snapshots of the etcd of one cluster. Whoever may create one
// chooses who can read all Secrets of the cluster, so only administrators may.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=etcdsnapshotschedules,scope=Namespaced,singular=etcdsnapshotschedule,shortName=etcdsnap
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=".spec.clusterName"
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=".spec.schedule"
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=".status.lastSnapshot.time"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type EtcdSnapshotSchedule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec EtcdSnapshotScheduleSpec `json:"spec"`
	// +optional
	Status EtcdSnapshotScheduleStatus `json:"status,omitempty,omitzero"`
}

// EtcdSnapshotScheduleList is a list of EtcdSnapshotSchedules.
//
// +kubebuilder:object:root=true
type EtcdSnapshotScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EtcdSnapshotSchedule `json:"items"`
}
