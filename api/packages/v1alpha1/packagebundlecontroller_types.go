package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageBundleControllerSpec selects the bundle of a cluster and the registry of bundles and
// charts.
type PackageBundleControllerSpec struct {
	// logLevel has no effect.
	// +optional
	LogLevel *int32 `json:"logLevel,omitempty"`
	// upgradeCheckInterval is the interval of checks for newer bundles.
	//
	// +kubebuilder:default="24h"
	// +optional
	UpgradeCheckInterval metav1.Duration `json:"upgradeCheckInterval,omitempty"`
	// upgradeCheckShortInterval is the interval of retries after a failed check.
	//
	// +kubebuilder:default="1h"
	// +optional
	UpgradeCheckShortInterval metav1.Duration `json:"upgradeCheckShortInterval,omitempty"`
	// activeBundle is the name of a PackageBundle. If it is empty, the controller sets it to the
	// latest.
	// +optional
	ActiveBundle string `json:"activeBundle,omitempty"`
	// privateRegistry has no effect.
	// +optional
	PrivateRegistry string `json:"privateRegistry,omitempty"`
	// defaultRegistry contains bundles, and charts without a registry in the bundle. It defaults to
	// the registry of the manager.
	// +optional
	DefaultRegistry string `json:"defaultRegistry,omitempty"`
	// defaultImageRegistry is passed to charts as the value sourceRegistry. It defaults to
	// defaultRegistry.
	// +optional
	DefaultImageRegistry string `json:"defaultImageRegistry,omitempty"`
	// bundleRepository is the repository of the bundles.
	//
	// +kubebuilder:default="eks-anywhere-packages-bundles"
	// +optional
	BundleRepository string `json:"bundleRepository,omitempty"`
	// source overrides defaultRegistry and bundleRepository.
	// +optional
	Source *BundleSource `json:"source,omitempty"`
	// createNamespace creates the target namespaces of packages.
	//
	// +kubebuilder:default=false
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`
	// upgradePolicy selects the newer bundles that are activated automatically: none (never),
	// bundles that keep the minor version of every package on the cluster (patch), or all (always).
	//
	// +kubebuilder:default=never
	// +optional
	UpgradePolicy UpgradePolicy `json:"upgradePolicy,omitempty"`
	// clusterNamespace is the namespace of the Cluster. By default, eksa-system is searched, and
	// then all namespaces.
	// +optional
	ClusterNamespace string `json:"clusterNamespace,omitempty"`
}

// UpgradePolicy is one of never, patch and always.
//
// +kubebuilder:validation:Enum=never;patch;always
type UpgradePolicy string

// Upgrade policies.
const (
	UpgradeNever  UpgradePolicy = "never"
	UpgradePatch  UpgradePolicy = "patch"
	UpgradeAlways UpgradePolicy = "always"
)

// BundleSource locates bundles.
type BundleSource struct {
	// +optional
	Registry string `json:"registry,omitempty"`
	// +optional
	Repository string `json:"repository,omitempty"`
}

// BundleControllerStateEnum is the state of a PackageBundleController.
//
// +kubebuilder:validation:Enum=ignored;active;disconnected;upgrade available
type BundleControllerStateEnum string

// States of a PackageBundleController.
const (
	ControllerIgnored          BundleControllerStateEnum = "ignored"
	ControllerActive           BundleControllerStateEnum = "active"
	ControllerDisconnected     BundleControllerStateEnum = "disconnected"
	ControllerUpgradeAvailable BundleControllerStateEnum = "upgrade available"
)

// PackageBundleControllerStatus is the observed state of a PackageBundleController.
type PackageBundleControllerStatus struct {
	// +optional
	State BundleControllerStateEnum `json:"state,omitempty"`
	// +optional
	Detail string `json:"detail,omitempty"`
	// spec is the last observed spec.
	// +optional
	Spec *PackageBundleControllerSpec `json:"spec,omitempty"`
	// latestBundle is the newest known bundle for the cluster's version of Kubernetes.
	// +optional
	LatestBundle string `json:"latestBundle,omitempty"`
	// kubernetesVersion is the version of the cluster, such as 1.36.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// lastCheck is the time of the last successful check for newer bundles.
	// +optional
	LastCheck *metav1.Time `json:"lastCheck,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PackageBundleController selects the bundle of the cluster with the same name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=packagebundlecontrollers,scope=Namespaced,shortName=pbc,singular=packagebundlecontroller
// +kubebuilder:printcolumn:name="ActiveBundle",type=string,JSONPath=".spec.activeBundle"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=".status.state"
// +kubebuilder:printcolumn:name="Detail",type=string,JSONPath=".status.detail"
type PackageBundleController struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is optional.
	// +kubebuilder:default={}
	Spec   PackageBundleControllerSpec   `json:"spec,omitempty"`
	Status PackageBundleControllerStatus `json:"status,omitempty"`
}

// Registry returns the registry of the bundles, empty for the registry of the manager.
func (s *PackageBundleControllerSpec) Registry() string {
	if s.Source != nil && s.Source.Registry != "" {
		return s.Source.Registry
	}
	return s.DefaultRegistry
}

// Repository returns the repository of the bundles.
func (s *PackageBundleControllerSpec) Repository() string {
	if s.Source != nil && s.Source.Repository != "" {
		return s.Source.Repository
	}
	return s.BundleRepository
}

// PackageBundleControllerList is a list of PackageBundleControllers.
//
// +kubebuilder:object:root=true
type PackageBundleControllerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PackageBundleController `json:"items"`
}
