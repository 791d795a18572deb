package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// GitAction is what a GitChange does to the files of a cluster.
// +kubebuilder:validation:Enum=Write;Remove
type GitAction string

const (
	// GitWrite writes the objects of a cluster into its files.
	GitWrite GitAction = "Write"
	// GitRemove removes the files of a cluster. Flux then deletes the cluster.
	GitRemove GitAction = "Remove"
)

// Conditions of a GitChange.
const (
	// GitChangeReady is the summary of the other conditions.
	GitChangeReady = "Ready"
	// GitCommitted means that the branch has the change.
	GitCommitted = "Committed"
	// GitApplied means that Flux has applied the commit, or a later one, to the cluster.
	GitApplied = "Applied"
)

// Reasons of the conditions of a GitChange.
const (
	// GitCommittedReason: the change was pushed.
	GitCommittedReason = "Committed"
	// GitUnchangedReason: the files had the requested content already.
	GitUnchangedReason = "Unchanged"
	// GitAppliedReason: Flux has applied the commit.
	GitAppliedReason = "Applied"
	// GitWaitingReason: Flux has not applied the commit yet.
	GitWaitingReason = "WaitingForFlux"
	// GitUnavailableReason: the Git server doesn't answer, or somebody else is always faster. It is
	// retried.
	GitUnavailableReason = "GitUnavailable"
	// GitDeniedReason: the repository isn't open to the namespace, the credentials are rejected, or
	// the branch is protected. It is retried, less often.
	GitDeniedReason = "Denied"
	// GitInvalidReason: the objects or the files can't be written. It is final.
	GitInvalidReason = "Invalid"
	// GitApplyFailedReason: Flux can't apply the commit.
	GitApplyFailedReason = "ApplyFailed"
	// GitQueuedReason: an older change of the cluster, or another one of the repository, comes first.
	GitQueuedReason = "Queued"
	// GitSupersededReason: a later change wrote the files that this one removed. It is final.
	GitSupersededReason = "Superseded"
)

// GitChangeSpec is a change of the files of one cluster. It is immutable.
type GitChangeSpec struct {
	// cluster is the name of a Cluster in the same namespace, which need not exist yet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	Cluster string    `json:"cluster"`
	Action  GitAction `json:"action"`
	// fluxConfig is the name of the FluxConfig, in the same namespace, that names the repository.
	// +kubebuilder:validation:MinLength=1
	FluxConfig string `json:"fluxConfig"`
	// objects are the Cluster and the configs that it references, to be written. All are in the same
	// namespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:pruning:PreserveUnknownFields
	Objects []runtime.RawExtension `json:"objects,omitempty"`
	// command is what the user called, for the commit's message.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Command string `json:"command,omitempty"`
	// requestedBy is the user who created the object. Drover's webhook sets it.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
}

// GitChangeStatus is what became of a change.
type GitChangeStatus struct {
	// commit is the ID of the commit that has the change.
	// +optional
	Commit string `json:"commit,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// GitChange asks Drover to commit a change of a cluster's files, so that users need no credentials
// of the Git server. Drover deletes it some time after it is applied.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitchanges,scope=Namespaced,singular=gitchange
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=".spec.cluster"
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=".spec.action"
// +kubebuilder:printcolumn:name="Commit",type=string,JSONPath=".status.commit"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type GitChange struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a GitChange is immutable: create another one"
	Spec GitChangeSpec `json:"spec"`
	// +optional
	Status GitChangeStatus `json:"status,omitempty,omitzero"`
}

// GitChangeList is a list of GitChanges.
//
// +kubebuilder:object:root=true
type GitChangeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GitChange `json:"items"`
}
