package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterStatus is what became of a Cluster.
type ClusterStatus struct {
	// failureMessage says what its user has to do something about. It is gone once that is done.
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`
	// failureReason is failureMessage for programs.
	// +optional
	FailureReason *FailureReason `json:"failureReason,omitempty"`
	// version is the version of Kubernetes that all control planes have, such as v1.36.3.
	// +optional
	Version string `json:"version,omitempty"`
	// controlPlane says how many control planes are ready and how many are wanted, such as 2/3.
	// +optional
	ControlPlane string `json:"controlPlane,omitempty"`
	// workers says the same of workers, of all groups together.
	// +optional
	Workers string `json:"workers,omitempty"`
	// clusterCertificateInfo says when the certificates of control planes end.
	// +optional
	// +listType=atomic
	ClusterCertificateInfo []ClusterCertificateInfo `json:"clusterCertificateInfo,omitempty"`
	// reconciledGeneration is the last generation of the Cluster that was carried out to the end.
	// +optional
	ReconciledGeneration int64 `json:"reconciledGeneration,omitempty"`
	// childrenReconciledGeneration is the sum of the generations, at that time, of the objects that the Cluster names.
	// +optional
	ChildrenReconciledGeneration int64 `json:"childrenReconciledGeneration,omitempty"`
	// observedGeneration is the last generation of the Cluster that was looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// auditedGeneration is the last generation of which it is on record who asked for it.
	// +optional
	AuditedGeneration int64 `json:"auditedGeneration,omitempty"`
	// eksdReleaseRef is accepted and not written.
	// +optional
	EksdReleaseRef *EksdReleaseRef `json:"eksdReleaseRef,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterCertificateInfo says when certificates of a machine end.
type ClusterCertificateInfo struct {
	Machine       string `json:"machine"`
	ExpiresInDays int    `json:"expiresInDays"`
}

// EksdReleaseRef named a distribution of Kubernetes.
type EksdReleaseRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
}

// GetConditions lets helpers for conditions work on a Cluster.
func (c *Cluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions lets helpers for conditions work on a Cluster.
func (c *Cluster) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }
