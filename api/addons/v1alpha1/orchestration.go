package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Orchestration is what a HelmChartProxy adds to a chart and its values. Nothing here depends on
// Helm. All fields are optional.
type Orchestration struct {
	// versionTemplate is rendered for each cluster and replaces version.
	// +optional
	VersionTemplate string `json:"versionTemplate,omitempty"`
	// versions select by the cluster's Kubernetes version: the first entry whose range matches
	// replaces version.
	// +optional
	// +listType=atomic
	Versions []VersionRule `json:"versions,omitempty"`
	// valuesFrom are merged in order, below valuesTemplate.
	// +optional
	// +listType=atomic
	ValuesFrom []ValuesSource `json:"valuesFrom,omitempty"`
	// overrides are values for some clusters, merged in order over valuesTemplate.
	// +optional
	// +listType=atomic
	Overrides []Override `json:"overrides,omitempty"`
	// dependsOn names HelmChartProxies of the same namespace that must be ready on a cluster first.
	// +optional
	// +listType=set
	DependsOn []string `json:"dependsOn,omitempty"`
	// rollout rolls out changes in waves.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`
	// drift is what to do about changes by others to the release's objects.
	// +optional
	Drift *Drift `json:"drift,omitempty"`
	// health defines when custom kinds are ready. Built-in kinds are known.
	// +optional
	// +listType=atomic
	Health []HealthCheck `json:"health,omitempty"`
	// verify rejects charts without a valid signature.
	// +optional
	Verify *Verification `json:"verify,omitempty"`
	// tool installs the package. It is immutable.
	// +optional
	Tool Tool `json:"tool,omitempty"`
}

// Tool installs a package on a cluster.
//
// +kubebuilder:validation:Enum="";Helm;Manifests
type Tool string

// Tools.
const (
	// Helm installs charts. It is the default.
	Helm Tool = "Helm"
	// Manifests applies plain manifests, or a kustomization, from an OCI artifact.
	Manifests Tool = "Manifests"
)

// VersionRule is the version of a chart for a range of Kubernetes versions.
type VersionRule struct {
	// kubernetes is a range such as ">= 1.35, < 1.37".
	Kubernetes string `json:"kubernetes"`
	Version    string `json:"version"`
}

// ValuesSource is a source of values.
type ValuesSource struct {
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`
	// name may be a template, like valuesTemplate.
	Name string `json:"name"`
	// +optional
	// +kubebuilder:default=values.yaml
	Key string `json:"key,omitempty"`
	// optional ignores a source that doesn't exist.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// Override is values for the clusters that a selector matches.
type Override struct {
	ClusterSelector metav1.LabelSelector `json:"clusterSelector"`
	// +optional
	ValuesTemplate string `json:"valuesTemplate,omitempty"`
	// +optional
	Version string `json:"version,omitempty"`
}

// Rollout rolls out changes step by step.
type Rollout struct {
	// waves run one after the other; clusters that match no wave come last, together.
	// +optional
	// +listType=atomic
	Waves []Wave `json:"waves,omitempty"`
	// maxUnavailable is how many clusters may change at a time, a number or a percentage of all.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// soak is how long a wave must stay ready before the next one starts.
	// +optional
	Soak *metav1.Duration `json:"soak,omitempty"`
	// pauseAfter is how many failed clusters pause the rollout. The default is 1.
	// +optional
	PauseAfter *int32 `json:"pauseAfter,omitempty"`
	// onFailure is Pause, or Rollback to the last spec that was rolled out completely.
	// +optional
	// +kubebuilder:validation:Enum=Pause;Rollback
	OnFailure string `json:"onFailure,omitempty"`
}

// Wave is a group of clusters: those that a selector matches, or the first by name of those that
// are left.
type Wave struct {
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// size is a number or a percentage of all clusters.
	// +optional
	Size *intstr.IntOrString `json:"size,omitempty"`
}

// Drift is what to do about changes by others.
type Drift struct {
	// mode is Off, Report or Correct.
	// +kubebuilder:validation:Enum=Off;Report;Correct
	Mode string `json:"mode"`
	// ignore lists fields that others may change.
	// +optional
	// +listType=atomic
	Ignore []IgnoreRule `json:"ignore,omitempty"`
}

// Modes of drift.
const (
	DriftOff     = "Off"
	DriftReport  = "Report"
	DriftCorrect = "Correct"
)

// IgnoreRule selects fields of objects. Empty fields match everything.
type IgnoreRule struct {
	// +optional
	Group string `json:"group,omitempty"`
	// +optional
	Kind string `json:"kind,omitempty"`
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// paths are JSON pointers such as /spec/replicas.
	// +listType=set
	Paths []string `json:"paths"`
}

// HealthCheck defines when objects of a kind are ready.
type HealthCheck struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// current is a CEL expression over the object, self, that is true when it is ready.
	Current string `json:"current"`
	// failed is a CEL expression that is true when the object can't become ready by itself.
	// +optional
	Failed string `json:"failed,omitempty"`
}

// Verification configures the signatures of charts.
type Verification struct {
	// provider is cosign, for OCI registries, or helm, for provenance files.
	// +kubebuilder:validation:Enum=cosign;helm
	Provider string `json:"provider"`
	// secretRef names a Secret of the same namespace; each of its keys contains a public key or a
	// keyring.
	SecretRef SecretName `json:"secretRef"`
}

// SecretName names a Secret of the same namespace.
type SecretName struct {
	Name string `json:"name"`
}
