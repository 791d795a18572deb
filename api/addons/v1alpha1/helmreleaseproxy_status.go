package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HelmReleaseProxyStatus is what became of a release.
type HelmReleaseProxyStatus struct {
	// conditions: Ready sums up the others.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// status is Helm's word for it, such as deployed or pending-upgrade.
	// +optional
	Status string `json:"status,omitempty"`
	// revision is Helm's number of it.
	// +optional
	Revision int `json:"revision,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// applied is what the current revision was made of.
	// +optional
	Applied *AppliedRelease `json:"applied,omitempty"`
	// attempt is the last operation, if it failed.
	// +optional
	Attempt *FailedAttempt `json:"attempt,omitempty"`
}

// FailedAttempt is an operation that failed.
type FailedAttempt struct {
	// fingerprint is a digest of the chart, the values and the options that were tried. Others are tried at once.
	Fingerprint string `json:"fingerprint"`
	// at is when it failed.
	At metav1.Time `json:"at"`
	// failures counts those in a row, for waiting longer each time.
	Failures int32 `json:"failures"`
	// message is why.
	// +optional
	Message string `json:"message,omitempty"`
	// terminal says that only a change of the chart, the values or the options can mend it, or of the cluster.
	// +optional
	Terminal bool `json:"terminal,omitempty"`
	// reverted says that the objects did not become ready in time and that the revision before is back. It is not tried again.
	// +optional
	Reverted bool `json:"reverted,omitempty"`
}

// AppliedRelease identifies what a revision was made of, so that nothing is done twice.
type AppliedRelease struct {
	// fingerprint is a digest of the chart, the values and the options.
	Fingerprint string `json:"fingerprint"`
	// chart is the chart's digest.
	Chart string `json:"chart"`
	// version is the chart's version.
	Version string `json:"version"`
	// stamp tells whether somebody else has changed the release since.
	// +optional
	Stamp string `json:"stamp,omitempty"`
	// at is when the revision was made.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// GetConditions returns the conditions.
func (p *HelmReleaseProxy) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions replaces the conditions.
func (p *HelmReleaseProxy) SetConditions(c []metav1.Condition) { p.Status.Conditions = c }
