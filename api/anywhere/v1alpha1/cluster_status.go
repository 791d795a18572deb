package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterStatus is the observed state of a Cluster.
type ClusterStatus struct {
	// failureMessage is an error that the user must correct.
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`
	// failureReason is the machine-readable form of failureMessage.
	// +optional
	FailureReason *FailureReason `json:"failureReason,omitempty"`
	// version is the Kubernetes version of all control plane machines, such as v1.36.3.
	// +optional
	Version string `json:"version,omitempty"`
	// controlPlane is the number of ready and wanted control plane machines, such as 2/3.
	// +optional
	ControlPlane string `json:"controlPlane,omitempty"`
	// workers is the number of ready and wanted workers of all groups.
	// +optional
	Workers string `json:"workers,omitempty"`
	// clusterCertificateInfo lists when the certificates of control plane machines expire.
	// +optional
	// +listType=atomic
	ClusterCertificateInfo []ClusterCertificateInfo `json:"clusterCertificateInfo,omitempty"`
	// certificatesRenewed contains the last requests for new certificates that are complete.
	// +optional
	CertificatesRenewed CertificatesRenewed `json:"certificatesRenewed,omitempty,omitzero"`
	// reconciledGeneration is the last generation of the Cluster that was ready.
	// +optional
	ReconciledGeneration int64 `json:"reconciledGeneration,omitempty"`
	// childrenReconciledGeneration is the sum of the generations of the referenced objects at that
	// time.
	// +optional
	ChildrenReconciledGeneration int64 `json:"childrenReconciledGeneration,omitempty"`
	// observedGeneration is the last generation of the Cluster that the controller observed.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// auditedGeneration is the last generation with an audit record.
	// +optional
	AuditedGeneration int64 `json:"auditedGeneration,omitempty"`
	// auditedSequence is the number of the last change with an audit record.
	// +optional
	AuditedSequence int64 `json:"auditedSequence,omitempty"`
	// eksdReleaseRef is ignored.
	// +optional
	EksdReleaseRef *EksdReleaseRef `json:"eksdReleaseRef,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterCertificateInfo contains when the certificates of a machine expire.
type ClusterCertificateInfo struct {
	Machine       string `json:"machine"`
	ExpiresInDays int    `json:"expiresInDays"`
}

// CertificatesRenewed contains times: all certificates were issued since.
type CertificatesRenewed struct {
	// controlPlane is about the machines of the control plane.
	// +optional
	ControlPlane *metav1.Time `json:"controlPlane,omitempty"`
	// etcd is about the machines of external etcd.
	// +optional
	Etcd *metav1.Time `json:"etcd,omitempty"`
}

// EksdReleaseRef references a distribution of Kubernetes.
type EksdReleaseRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
}

// GetConditions returns the conditions.
func (c *Cluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions sets the conditions.
func (c *Cluster) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }
