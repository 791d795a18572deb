package build

import (
	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// The release of the network on each cluster.
const (
	networkChart     = "cni"
	networkNamespace = "kube-system"
)

// network makes the HelmChartProxy that brings the network to this cluster and to no other. Where the spec leaves the network to its user,
// there is none.
func (b *builder) network() error {
	if b.Charts == "" || b.cluster.IsSkipUpgrade() {
		return nil
	}
	out := &addonsv1.HelmChartProxy{ObjectMeta: b.meta(NetworkName(b.cluster.Name))}
	out.Spec.ClusterSelector.MatchLabels = Labels(b.cluster)
	out.Spec.RepoURL = b.Charts
	out.Spec.ChartName = networkChart
	out.Spec.ReleaseName = networkChart
	out.Spec.ReleaseNamespace = networkNamespace
	out.Spec.Version = b.CNIVersion
	b.set.Network = out
	return nil
}
