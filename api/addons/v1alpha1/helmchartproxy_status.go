package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HelmChartProxyStatus is the observed state of a HelmChartProxy.
type HelmChartProxyStatus struct {
	// conditions describe the state; Ready summarizes the others.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// matchingClusters are the selected clusters, sorted by name.
	// +optional
	MatchingClusters []corev1.ObjectReference `json:"matchingClusters"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// rollout is the progress of a rollout in waves.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`
}

// RolloutStatus is the state of a rollout.
type RolloutStatus struct {
	// revision is a digest of what is rolled out.
	Revision string `json:"revision"`
	// lastGood is the digest of the last spec that was rolled out completely.
	// +optional
	LastGood string `json:"lastGood,omitempty"`
	// wave starts at 1.
	Wave int32 `json:"wave"`
	// +optional
	Waves int32 `json:"waves,omitempty"`
	// updated is on how many clusters the revision is ready.
	Updated int32 `json:"updated"`
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// tolerated is how many clusters had failed when the rollout was resumed; they don't pause it
	// again.
	// +optional
	Tolerated int32 `json:"tolerated,omitempty"`
	// resumed is the value of the annotation that last resumed the rollout.
	// +optional
	Resumed string `json:"resumed,omitempty"`
	// phase is Progressing, Soaking, Paused, RollingBack or Complete.
	Phase RolloutPhase `json:"phase"`
	// since is when the phase began.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// RolloutPhase is the phase of a rollout.
type RolloutPhase string

// The phases of a rollout.
const (
	RolloutProgressing RolloutPhase = "Progressing"
	RolloutSoaking     RolloutPhase = "Soaking"
	RolloutPaused      RolloutPhase = "Paused"
	RolloutRollingBack RolloutPhase = "RollingBack"
	RolloutComplete    RolloutPhase = "Complete"
)

// GetConditions returns the conditions.
func (p *HelmChartProxy) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions replaces the conditions.
func (p *HelmChartProxy) SetConditions(c []metav1.Condition) { p.Status.Conditions = c }
