package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageBundleSpec is what is signed.
type PackageBundleSpec struct {
	// +listType=atomic
	Packages []BundlePackage `json:"packages"`
	// minControllerVersion is the oldest Drover that can use the bundle, such as v0.1.0. It is not signed.
	// +optional
	MinVersion string `json:"minControllerVersion"`
}

// BundlePackage is a package of a bundle.
type BundlePackage struct {
	Name string `json:"name"`
	// workloadonly keeps the package off the management cluster.
	// +optional
	WorkloadOnly bool `json:"workloadonly,omitempty"`
	// +optional
	Source BundlePackageSource `json:"source,omitempty"`
}

// BundlePackageSource is where the versions of a package are.
type BundlePackageSource struct {
	// registry is that of the cluster's PackageBundleController if it is empty.
	// +optional
	Registry string `json:"registry,omitempty"`
	// repository of the charts.
	Repository string `json:"repository"`
	// versions has the latest first.
	//
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	Versions []SourceVersion `json:"versions"`
}

// SourceVersion is one version of a package.
type SourceVersion struct {
	// name is also the chart's tag.
	Name string `json:"name"`
	// digest is that of the chart's manifest.
	Digest string `json:"digest"`
	// images are what the chart needs.
	// +optional
	// +listType=atomic
	Images []VersionImages `json:"images,omitempty"`
	// schema is base64 of gzip of a JSON schema for config. An empty one accepts anything.
	// +optional
	Schema string `json:"schema,omitempty"`
	// dependencies are packages of the same bundle that must be installed first.
	// +optional
	// +listType=atomic
	Dependencies []string `json:"dependencies,omitempty"`
}

// VersionImages is an image.
type VersionImages struct {
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
}

// PackageBundleStateEnum says whether a bundle can be used.
//
// +kubebuilder:validation:Enum=available;ignored;invalid;controller upgrade required
type PackageBundleStateEnum string

// States of a PackageBundle. None of them is "active": clusters share bundles, and each has its own active one.
const (
	BundleAvailable       PackageBundleStateEnum = "available"
	BundleIgnored         PackageBundleStateEnum = "ignored"
	BundleInvalid         PackageBundleStateEnum = "invalid"
	BundleUpgradeRequired PackageBundleStateEnum = "controller upgrade required"
)

// PackageBundleStatus is what became of a PackageBundle.
type PackageBundleStatus struct {
	// spec is accepted and not written: it would double the object.
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

// PackageBundle is a signed list of packages for one minor version of Kubernetes. Its name is v<major>-<minor>-<build>.
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

// PackageBundleList is a list of them.
//
// +kubebuilder:object:root=true
type PackageBundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PackageBundle `json:"items"`
}
