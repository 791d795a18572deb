package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Orchestration is what a HelmChartProxy can say beyond a chart and its values. Nothing here knows of Helm. All of it is optional.
type Orchestration struct {
	// versionTemplate is rendered for each cluster and takes the place of version.
	// +optional
	VersionTemplate string `json:"versionTemplate,omitempty"`
	// versions choose by the cluster's version of Kubernetes: the first entry whose range holds takes the place of version.
	// +optional
	// +listType=atomic
	Versions []VersionRule `json:"versions,omitempty"`
	// valuesFrom are merged in their order, below valuesTemplate.
	// +optional
	// +listType=atomic
	ValuesFrom []ValuesSource `json:"valuesFrom,omitempty"`
	// overrides are values for some of the clusters, merged in their order on top of valuesTemplate.
	// +optional
	// +listType=atomic
	Overrides []Override `json:"overrides,omitempty"`
	// dependsOn names HelmChartProxies of the same namespace that must be ready on a cluster first.
	// +optional
	// +listType=set
	DependsOn []string `json:"dependsOn,omitempty"`
	// rollout takes changes to the clusters in waves.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`
	// drift says what happens to changes that others make to the release's objects.
	// +optional
	Drift *Drift `json:"drift,omitempty"`
	// health says when custom kinds are ready. Kinds of Kubernetes are known.
	// +optional
	// +listType=atomic
	Health []HealthCheck `json:"health,omitempty"`
	// verify refuses charts without a good signature.
	// +optional
	Verify *Verification `json:"verify,omitempty"`
	// tool puts the package onto clusters. It can't be changed.
	// +optional
	Tool Tool `json:"tool,omitempty"`
}

// Tool is what puts a package onto a cluster.
//
// +kubebuilder:validation:Enum="";Helm;Manifests
type Tool string

// The tools.
const (
	// Helm installs charts. It is what an empty tool means.
	Helm Tool = "Helm"
	// Manifests applies plain manifests, or a kustomization, from an OCI artifact.
	Manifests Tool = "Manifests"
)

// VersionRule is a version of a chart for some versions of Kubernetes.
type VersionRule struct {
	// kubernetes is a range such as ">= 1.35, < 1.37".
	Kubernetes string `json:"kubernetes"`
	Version    string `json:"version"`
}

// ValuesSource is a place that values come from.
type ValuesSource struct {
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`
	// name may be a template, as valuesTemplate.
	Name string `json:"name"`
	// +optional
	// +kubebuilder:default=values.yaml
	Key string `json:"key,omitempty"`
	// optional goes on without what is missing.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// Override is values for those clusters that a selector matches.
type Override struct {
	ClusterSelector metav1.LabelSelector `json:"clusterSelector"`
	// +optional
	ValuesTemplate string `json:"valuesTemplate,omitempty"`
	// +optional
	Version string `json:"version,omitempty"`
}

// Rollout takes changes to clusters step by step.
type Rollout struct {
	// waves run one after the other; clusters that no wave takes come last, all together.
	// +optional
	// +listType=atomic
	Waves []Wave `json:"waves,omitempty"`
	// maxUnavailable is how many clusters of a wave may be changing at a time, a number or a percentage of all.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// soak is how long a wave must stay ready before the next begins.
	// +optional
	Soak *metav1.Duration `json:"soak,omitempty"`
	// pauseAfter is how many failed clusters pause the rollout. The default is 1.
	// +optional
	PauseAfter *int32 `json:"pauseAfter,omitempty"`
	// onFailure is Pause or Rollback to what was rolled out completely before.
	// +optional
	// +kubebuilder:validation:Enum=Pause;Rollback
	OnFailure string `json:"onFailure,omitempty"`
}

// Wave is a part of the clusters: those that a selector matches, or so many of those that are left, by name.
type Wave struct {
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// size is a number or a percentage of all clusters.
	// +optional
	Size *intstr.IntOrString `json:"size,omitempty"`
}

// Drift says what happens to changes that others make.
type Drift struct {
	// mode is Off, Report or Correct.
	// +kubebuilder:validation:Enum=Off;Report;Correct
	Mode string `json:"mode"`
	// ignore names fields that others may change.
	// +optional
	// +listType=atomic
	Ignore []IgnoreRule `json:"ignore,omitempty"`
}

// The modes of drift.
const (
	DriftOff     = "Off"
	DriftReport  = "Report"
	DriftCorrect = "Correct"
)

// IgnoreRule names fields of objects. What is empty matches everything.
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

// HealthCheck says when objects of a kind are ready.
type HealthCheck struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// current is a CEL expression over the object, self, that is true when it is ready.
	Current string `json:"current"`
	// failed is one that is true when it will not become ready by itself.
	// +optional
	Failed string `json:"failed,omitempty"`
}

// Verification says how a chart is signed.
type Verification struct {
	// provider is cosign, for OCI registries, or helm, for provenance files.
	// +kubebuilder:validation:Enum=cosign;helm
	Provider string `json:"provider"`
	// secretRef names a Secret of the same namespace; every key of it holds a public key or a keyring.
	SecretRef SecretName `json:"secretRef"`
}

// SecretName names a Secret of the same namespace.
type SecretName struct {
	Name string `json:"name"`
}
