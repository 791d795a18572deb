package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageSpec is a package of the active bundle.
type PackageSpec struct {
	// packageName is what the bundle calls it, in any case.
	PackageName string `json:"packageName"`
	// packageVersion is a name or a digest of the bundle. Without it the package follows the bundle.
	// +optional
	PackageVersion string `json:"packageVersion,omitempty"`
	// config is YAML, as a string.
	// +optional
	Config string `json:"config,omitempty"`
	// targetNamespace is the namespace on the cluster. It can't be changed.
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// timeout is how long the objects of the package may take to become ready, 10 minutes if it is not set.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// rollbackOnFailure goes back to what was installed if an upgrade fails.
	// +optional
	RollbackOnFailure bool `json:"rollbackOnFailure,omitempty"`
}

// StateEnum is how far a package has come.
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

// PackageStatus is what became of a Package.
type PackageStatus struct {
	// source is where the chart is, as the bundle says.
	Source PackageOCISource `json:"source"`
	// currentVersion was installed last.
	CurrentVersion string `json:"currentVersion"`
	// targetVersion is what is wanted, with " (latest)" if it follows the bundle.
	// +optional
	TargetVersion string `json:"targetVersion,omitempty"`
	// +optional
	State StateEnum `json:"state,omitempty"`
	// detail is the last error or a hint.
	// +optional
	Detail string `json:"detail,omitempty"`
	// upgradesAvailable are later versions in the newest bundle that is known for the cluster.
	// +optional
	// +listType=atomic
	UpgradesAvailable []PackageAvailableUpgrade `json:"upgradesAvailable,omitempty"`
	// spec was accepted last.
	// +optional
	Spec PackageSpec `json:"spec,omitempty"`
	// target is where the package goes.
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
	// clusterNamespace is that of the Cluster here.
	ClusterNamespace string `json:"clusterNamespace"`
	Release          string `json:"release"`
	// namespace is that of the release on the cluster.
	Namespace string `json:"namespace"`
}

// PackageOCISource is a chart in a registry.
type PackageOCISource struct {
	Version string `json:"version"`
	// registry is empty if the bundle leaves it to the cluster's PackageBundleController.
	Registry   string `json:"registry"`
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
}

// PackageAvailableUpgrade is a later version.
type PackageAvailableUpgrade struct {
	Version string `json:"version"`
	// tag is the bundle that has it.
	Tag string `json:"tag"`
}

// Package is a package of a bundle on one cluster.
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

// PackageList is a list of them.
//
// +kubebuilder:object:root=true
type PackageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Package `json:"items"`
}
