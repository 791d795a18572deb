package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HelmReleaseProxyStatus is the observed state of a release.
type HelmReleaseProxyStatus struct {
	// conditions describe the state; Ready summarizes the others.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// status is Helm's status, such as deployed or pending-upgrade.
	// +optional
	Status string `json:"status,omitempty"`
	// revision is Helm's revision.
	// +optional
	Revision int `json:"revision,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// applied identifies what the current revision was made from.
	// +optional
	Applied *AppliedRelease `json:"applied,omitempty"`
	// attempt is the last operation, if it failed.
	// +optional
	Attempt *FailedAttempt `json:"attempt,omitempty"`
}

// FailedAttempt is an operation that failed.
type FailedAttempt struct {
	// fingerprint is a digest of the chart, the values and the options that were tried. Others are
	// tried immediately.
	Fingerprint string `json:"fingerprint"`
	// at is when it failed.
	At metav1.Time `json:"at"`
	// failures counts consecutive failures, for the back-off.
	Failures int32 `json:"failures"`
	// message is the error.
	// +optional
	Message string `json:"message,omitempty"`
	// terminal reports that only a change of the chart, the values, the options or the cluster can
	// fix it.
	// +optional
	Terminal bool `json:"terminal,omitempty"`
	// reverted reports that the objects did not become ready in time and that the release was
	// rolled back. It is not tried again.
	// +optional
	Reverted bool `json:"reverted,omitempty"`
}

// AppliedRelease identifies what a revision was made from, so that nothing is done twice.
type AppliedRelease struct {
	// fingerprint is a digest of the chart, the values and the options.
	Fingerprint string `json:"fingerprint"`
	// chart is the chart's digest.
	Chart string `json:"chart"`
	// version is the chart's version.
	Version string `json:"version"`
	// kubernetes is the range of Kubernetes versions that the chart supports; empty means all.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`
	// upgradeStage is when the add-on is upgraded in a Kubernetes upgrade, if the chart says so.
	// +optional
	UpgradeStage UpgradeStage `json:"upgradeStage,omitempty"`
	// stamp changes when something else changes the release.
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
