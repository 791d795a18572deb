package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HelmReleaseProxySpec is one release on one cluster. A HelmChartProxy writes it, or a user.
type HelmReleaseProxySpec struct {
	// clusterRef is the Cluster. One of another namespace requires serviceAccountName.
	ClusterRef corev1.ObjectReference `json:"clusterRef"`
	// chartName is immutable.
	ChartName string `json:"chartName"`
	// repoURL is immutable.
	RepoURL string `json:"repoURL"`
	// releaseName is generated if empty.
	// +optional
	ReleaseName string `json:"releaseName,omitempty"`
	// namespace is the namespace of the release, "default" if empty. It is immutable.
	// +optional
	ReleaseNamespace string `json:"namespace"`
	// +optional
	Version string `json:"version,omitempty"`
	// values are YAML.
	// +optional
	Values string `json:"values,omitempty"`
	// reconcileStrategy is immutable.
	// +optional
	ReconcileStrategy ReconcileStrategy `json:"reconcileStrategy,omitempty"`
	// +optional
	Options HelmOptions `json:"options,omitempty"`
	// +optional
	Credentials *Credentials `json:"credentials,omitempty"`
	// +optional
	TLSConfig *TLSConfig `json:"tlsConfig,omitempty"`
	// valuesFrom are merged in order, below values. Names are not templates.
	// +optional
	// +listType=atomic
	ValuesFrom []ValuesSource `json:"valuesFrom,omitempty"`
	// drift is what to do about changes by others to the release's objects.
	// +optional
	Drift *Drift `json:"drift,omitempty"`
	// health defines when custom kinds are ready.
	// +optional
	// +listType=atomic
	Health []HealthCheck `json:"health,omitempty"`
	// verify rejects charts without a valid signature.
	// +optional
	Verify *Verification `json:"verify,omitempty"`
	// dependsOn names HelmChartProxies of the same namespace that must be ready on the cluster
	// first.
	// +optional
	// +listType=set
	DependsOn []string `json:"dependsOn,omitempty"`
	// tool installs the package. It is immutable.
	// +optional
	Tool Tool `json:"tool,omitempty"`
	// serviceAccountName is a ServiceAccount of the same namespace. With it, the release uses
	// only what the account may read on the management plane, and does only what a user
	// system:serviceaccount:<namespace>:<name> may do on the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// HelmReleaseProxy is one release on one cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=helmreleaseproxies,scope=Namespaced,shortName=hrp
// +kubebuilder:metadata:labels=visualizer.cluster.x-k8s.io=
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=".spec.clusterRef.name"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.status"
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=".status.revision"
type HelmReleaseProxy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   HelmReleaseProxySpec   `json:"spec,omitempty"`
	Status HelmReleaseProxyStatus `json:"status,omitempty"`
}

// HelmReleaseProxyList is a list of HelmReleaseProxies.
//
// +kubebuilder:object:root=true
type HelmReleaseProxyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HelmReleaseProxy `json:"items"`
}
