package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageBundleControllerSpec says which bundle a cluster uses, and where bundles and charts come from.
type PackageBundleControllerSpec struct {
	// logLevel has no effect.
	// +optional
	LogLevel *int32 `json:"logLevel,omitempty"`
	// upgradeCheckInterval is how often newer bundles are looked for.
	//
	// +kubebuilder:default="24h"
	// +optional
	UpgradeCheckInterval metav1.Duration `json:"upgradeCheckInterval,omitempty"`
	// upgradeCheckShortInterval is how soon that is tried again after it failed.
	//
	// +kubebuilder:default="1h"
	// +optional
	UpgradeCheckShortInterval metav1.Duration `json:"upgradeCheckShortInterval,omitempty"`
	// activeBundle is a PackageBundle. If it is empty, it becomes the latest.
	// +optional
	ActiveBundle string `json:"activeBundle,omitempty"`
	// privateRegistry has no effect.
	// +optional
	PrivateRegistry string `json:"privateRegistry,omitempty"`
	// defaultRegistry has the bundles, and the charts whose bundle does not name another. It is the manager's if it is empty.
	// +optional
	DefaultRegistry string `json:"defaultRegistry,omitempty"`
	// defaultImageRegistry is told to charts as sourceRegistry. It is defaultRegistry if it is empty.
	// +optional
	DefaultImageRegistry string `json:"defaultImageRegistry,omitempty"`
	// bundleRepository has the bundles.
	//
	// +kubebuilder:default="eks-anywhere-packages-bundles"
	// +optional
	BundleRepository string `json:"bundleRepository,omitempty"`
	// source is another way to write defaultRegistry and bundleRepository, and comes before them.
	// +optional
	Source *BundleSource `json:"source,omitempty"`
	// createNamespace lets packages make their target namespace.
	//
	// +kubebuilder:default=false
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`
	// upgradePolicy says which newer bundles are activated without asking: never any; patch only those that keep each package of the cluster
	// in its minor version; or always all.
	//
	// +kubebuilder:default=never
	// +optional
	UpgradePolicy UpgradePolicy `json:"upgradePolicy,omitempty"`
	// clusterNamespace is that of the Cluster. Without it, it is looked for in eksa-system and then everywhere.
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

// BundleSource is where bundles are.
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

// PackageBundleControllerStatus is what became of a PackageBundleController.
type PackageBundleControllerStatus struct {
	// +optional
	State BundleControllerStateEnum `json:"state,omitempty"`
	// +optional
	Detail string `json:"detail,omitempty"`
	// spec was looked at last.
	// +optional
	Spec *PackageBundleControllerSpec `json:"spec,omitempty"`
	// latestBundle is the newest that is known for the cluster's Kubernetes version.
	// +optional
	LatestBundle string `json:"latestBundle,omitempty"`
	// kubernetesVersion is the cluster's, such as 1.36.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// lastCheck is when newer bundles were last looked for.
	// +optional
	LastCheck *metav1.Time `json:"lastCheck,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PackageBundleController says which bundle a cluster uses. It has the name of the cluster.
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

	// spec may be left out: its defaults hold all the same.
	// +kubebuilder:default={}
	Spec   PackageBundleControllerSpec   `json:"spec,omitempty"`
	Status PackageBundleControllerStatus `json:"status,omitempty"`
}

// Registry is where the bundles are, empty if that is left to the manager.
func (s *PackageBundleControllerSpec) Registry() string {
	if s.Source != nil && s.Source.Registry != "" {
		return s.Source.Registry
	}
	return s.DefaultRegistry
}

// Repository is where the bundles are in their registry.
func (s *PackageBundleControllerSpec) Repository() string {
	if s.Source != nil && s.Source.Repository != "" {
		return s.Source.Repository
	}
	return s.BundleRepository
}

// PackageBundleControllerList is a list of them.
//
// +kubebuilder:object:root=true
type PackageBundleControllerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PackageBundleController `json:"items"`
}
