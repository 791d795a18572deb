package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageBundleSpec is the signed content of a bundle.
type PackageBundleSpec struct {
	// +listType=atomic
	Packages []BundlePackage `json:"packages"`
	// minControllerVersion is the oldest version of Drover that can use the bundle, such as v0.1.0.
	// It is not signed.
	// +optional
	MinVersion string `json:"minControllerVersion"`
}

// BundlePackage is a package of a bundle.
type BundlePackage struct {
	Name string `json:"name"`
	// workloadonly excludes the package from the management cluster.
	// +optional
	WorkloadOnly bool `json:"workloadonly,omitempty"`
	// +optional
	Source BundlePackageSource `json:"source,omitempty"`
}

// BundlePackageSource locates the versions of a package.
type BundlePackageSource struct {
	// registry defaults to the registry of the PackageBundleController.
	// +optional
	Registry string `json:"registry,omitempty"`
	// repository contains the charts.
	Repository string `json:"repository"`
	// versions lists the latest version first.
	//
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	Versions []SourceVersion `json:"versions"`
}

// SourceVersion is one version of a package.
type SourceVersion struct {
	// name is the version and the tag of the chart.
	Name string `json:"name"`
	// digest is the digest of the manifest of the chart.
	Digest string `json:"digest"`
	// images lists the images of the chart.
	// +optional
	// +listType=atomic
	Images []VersionImages `json:"images,omitempty"`
	// schema is a JSON schema for config, compressed with gzip, in base64. An empty schema accepts
	// any config.
	// +optional
	Schema string `json:"schema,omitempty"`
	// dependencies lists packages of the same bundle that are installed first.
	// +optional
	// +listType=atomic
	Dependencies []string `json:"dependencies,omitempty"`
}

// VersionImages is an image.
type VersionImages struct {
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
}

// PackageBundleStateEnum is the state of a PackageBundle.
//
// +kubebuilder:validation:Enum=available;ignored;invalid;controller upgrade required
type PackageBundleStateEnum string

// States of a PackageBundle. There is no state "active", because each cluster has its own active
// bundle.
const (
	BundleAvailable       PackageBundleStateEnum = "available"
	BundleIgnored         PackageBundleStateEnum = "ignored"
	BundleInvalid         PackageBundleStateEnum = "invalid"
	BundleUpgradeRequired PackageBundleStateEnum = "controller upgrade required"
)

// PackageBundleStatus is the observed state of a PackageBundle.
type PackageBundleStatus struct {
	// spec is accepted but never written, because it would double the size of the object.
	// +optional
	Spec  *PackageBundleSpec     `json:"spec,omitempty"`
	State PackageBundleStateEnum `json:"state"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PackageBundle is a signed list of packages for one minor version of Kubernetes. Its name is
// v<major>-<minor>-<build>.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=packagebundles,scope=Namespaced,singular=packagebundle
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=".status.state"
type PackageBundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PackageBundleSpec   `json:"spec,omitempty"`
	Status PackageBundleStatus `json:"status,omitempty"`
}

// PackageBundleList is a list of PackageBundles.
//
// +kubebuilder:object:root=true
type PackageBundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PackageBundle `json:"items"`
}
