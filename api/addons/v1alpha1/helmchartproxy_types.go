package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HelmChartProxySpec says which chart goes onto which clusters, and how.
type HelmChartProxySpec struct {
	// clusterSelector chooses Clusters of the same namespace; an empty one chooses all of them.
	ClusterSelector metav1.LabelSelector `json:"clusterSelector"`
	// chartName is the chart's name in the repository, or the last part of its name in an OCI registry. A new name reinstalls.
	ChartName string `json:"chartName"`
	// repoURL is where the chart comes from: https://, or oci:// with everything of the name before the last part. A new URL reinstalls.
	RepoURL string `json:"repoURL"`
	// releaseName is the same on all clusters. If empty, one is made up for each. A new name reinstalls.
	// +optional
	ReleaseName string `json:"releaseName,omitempty"`
	// namespace is where the release goes, "default" if empty. A new one reinstalls.
	// +optional
	ReleaseNamespace string `json:"namespace,omitempty"`
	// version is the chart's, a range of them, or empty for the latest. A new one upgrades.
	// +optional
	Version string `json:"version,omitempty"`
	// valuesTemplate is rendered for each cluster: .Cluster, .ControlPlane, .InfraCluster, .Variables.
	// +optional
	ValuesTemplate string `json:"valuesTemplate,omitempty"`
	// reconcileStrategy can't be changed.
	// +optional
	ReconcileStrategy ReconcileStrategy `json:"reconcileStrategy,omitempty"`
	// +optional
	Options HelmOptions `json:"options,omitempty"`
	// +optional
	Credentials *Credentials `json:"credentials,omitempty"`
	// +optional
	TLSConfig *TLSConfig `json:"tlsConfig,omitempty"`

	Orchestration `json:",inline"`
}

// HelmChartProxy puts a chart onto every cluster that its selector matches.
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

// HelmChartProxyList is a list of them.
//
// +kubebuilder:object:root=true
type HelmChartProxyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HelmChartProxy `json:"items"`
}
