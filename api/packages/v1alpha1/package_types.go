package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageSpec selects a package of the active bundle.
type PackageSpec struct {
	// packageName is the name of the package in the bundle. Case is ignored.
	PackageName string `json:"packageName"`
	// packageVersion is the name or the digest of a version in the bundle. By default, the package
	// follows the bundle.
	// +optional
	PackageVersion string `json:"packageVersion,omitempty"`
	// config contains the values of the chart, as YAML in a string.
	// +optional
	Config string `json:"config,omitempty"`
	// targetNamespace is the namespace on the cluster. It is immutable.
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// timeout is how long the objects of the package may take to become ready. The default is 10
	// minutes.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// rollbackOnFailure rolls back failed upgrades.
	// +optional
	RollbackOnFailure bool `json:"rollbackOnFailure,omitempty"`
	// serviceAccountName is a ServiceAccount of the same namespace. With it, the package is
	// installed with what a user system:serviceaccount:<namespace>:<name> may do on the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// StateEnum is the state of a Package.
//
// +kubebuilder:validation:Enum=initializing;installing;installing dependencies;installed;updating;uninstalling;unknown
type StateEnum string

// States of a Package.
const (
	StateInitializing           StateEnum = "initializing"
	StateInstalling             StateEnum = "installing"
	StateInstallingDependencies StateEnum = "installing dependencies"
	StateInstalled              StateEnum = "installed"
	StateUpdating               StateEnum = "updating"
	StateUninstalling           StateEnum = "uninstalling"
	StateUnknown                StateEnum = "unknown"
)

// PackageStatus is the observed state of a Package.
type PackageStatus struct {
	// source is the location of the chart in the bundle.
	Source PackageOCISource `json:"source"`
	// currentVersion is the version that was installed last.
	CurrentVersion string `json:"currentVersion"`
	// targetVersion is the requested version, with " (latest)" if the package follows the bundle.
	// +optional
	TargetVersion string `json:"targetVersion,omitempty"`
	// +optional
	State StateEnum `json:"state,omitempty"`
	// detail is the last error or a hint.
	// +optional
	Detail string `json:"detail,omitempty"`
	// upgradesAvailable lists newer versions in the newest bundle for the cluster.
	// +optional
	// +listType=atomic
	UpgradesAvailable []PackageAvailableUpgrade `json:"upgradesAvailable,omitempty"`
	// spec is the last accepted spec.
	// +optional
	Spec PackageSpec `json:"spec,omitempty"`
	// target is the release on the cluster.
	// +optional
	Target *PackageTarget `json:"target,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PackageTarget is the release of a package.
type PackageTarget struct {
	Cluster string `json:"cluster"`
	// clusterNamespace is the namespace of the Cluster object.
	ClusterNamespace string `json:"clusterNamespace"`
	// clusterUID identifies the Cluster. A Cluster that is created later with the same name has
	// another one, and does not get the package.
	// +optional
	ClusterUID string `json:"clusterUID,omitempty"`
	Release    string `json:"release"`
	// namespace is the namespace of the release on the cluster.
	Namespace string `json:"namespace"`
}

// PackageOCISource is a chart in a registry.
type PackageOCISource struct {
	Version string `json:"version"`
	// registry is empty if the registry of the PackageBundleController is used.
	Registry   string `json:"registry"`
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
}

// PackageAvailableUpgrade is a newer version of a package.
type PackageAvailableUpgrade struct {
	Version string `json:"version"`
	// tag is the name of the bundle with the version.
	Tag string `json:"tag"`
}

// Package installs a package of a bundle on one cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=packages,scope=Namespaced,singular=package
// +kubebuilder:printcolumn:name="Package",type=string,JSONPath=".spec.packageName"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=".status.state"
// +kubebuilder:printcolumn:name="CurrentVersion",type=string,JSONPath=".status.currentVersion"
// +kubebuilder:printcolumn:name="TargetVersion",type=string,JSONPath=".status.targetVersion"
// +kubebuilder:printcolumn:name="Detail",type=string,JSONPath=".status.detail"
type Package struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PackageSpec   `json:"spec,omitempty"`
	Status PackageStatus `json:"status,omitempty"`
}

// PackageList is a list of Packages.
//
// +kubebuilder:object:root=true
type PackageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Package `json:"items"`
}
