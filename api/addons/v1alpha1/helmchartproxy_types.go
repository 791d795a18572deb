package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HelmChartProxySpec is a chart and the clusters that it is installed on.
type HelmChartProxySpec struct {
	// clusterSelector selects Clusters of the same namespace; an empty one selects all of them.
	ClusterSelector metav1.LabelSelector `json:"clusterSelector"`
	// chartName is the name of the chart in the repository, or the last part of its name in an OCI
	// registry. A change reinstalls.
	ChartName string `json:"chartName"`
	// repoURL is the repository: https://, or oci:// with all but the last part of the name. A
	// change reinstalls.
	RepoURL string `json:"repoURL"`
	// releaseName is the same on all clusters. If empty, one is generated for each. A change
	// reinstalls.
	// +optional
	ReleaseName string `json:"releaseName,omitempty"`
	// namespace is the namespace of the release, "default" if empty. A change reinstalls.
	// +optional
	ReleaseNamespace string `json:"namespace,omitempty"`
	// version is a version of the chart or a range; empty is the latest. A change upgrades.
	// +optional
	Version string `json:"version,omitempty"`
	// valuesTemplate is rendered for each cluster: .Cluster, .ControlPlane, .InfraCluster,
	// .Variables.
	// +optional
	ValuesTemplate string `json:"valuesTemplate,omitempty"`
	// reconcileStrategy is immutable.
	// +optional
	ReconcileStrategy ReconcileStrategy `json:"reconcileStrategy,omitempty"`
	// +optional
	Options HelmOptions `json:"options,omitempty"`
	// +optional
	Credentials *Credentials `json:"credentials,omitempty"`
	// +optional
	TLSConfig *TLSConfig `json:"tlsConfig,omitempty"`
	// serviceAccountName is a ServiceAccount of the same namespace. With it, releases use only
	// what the account may read on the management plane, and do only what a user
	// system:serviceaccount:<namespace>:<name> may do on the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	Orchestration `json:",inline"`
}

// HelmChartProxy installs a chart on every cluster that its selector matches.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=helmchartproxies,scope=Namespaced,shortName=hcp
// +kubebuilder:metadata:labels=clusterctl.cluster.x-k8s.io/move-hierarchy=true
// +kubebuilder:metadata:labels=visualizer.cluster.x-k8s.io=
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message"
type HelmChartProxy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   HelmChartProxySpec   `json:"spec,omitempty"`
	Status HelmChartProxyStatus `json:"status,omitempty"`
}

// HelmChartProxyList is a list of HelmChartProxies.
//
// +kubebuilder:object:root=true
type HelmChartProxyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HelmChartProxy `json:"items"`
}
