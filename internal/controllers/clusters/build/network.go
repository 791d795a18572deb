package build

import (
	"encoding/json"
	"fmt"
	"strings"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
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
	values, err := networkValues(b.cluster)
	if err != nil {
		return err
	}
	out.Spec.ValuesTemplate = values
	b.set.Network = out
	return nil
}

// networkValues are those that the spec has for the chart. They are values and no template: nothing in them is carried out.
func networkValues(c *anywherev1.Cluster) (string, error) {
	config := c.Spec.ClusterNetwork.CNIConfig
	if config == nil || config.Cilium == nil || config.Cilium.HelmValues == nil || len(config.Cilium.HelmValues.Raw) == 0 {
		return "", nil
	}
	var values map[string]any
	if err := json.Unmarshal(config.Cilium.HelmValues.Raw, &values); err != nil {
		return "", fmt.Errorf("reading helmValues: %w", err)
	}
	text, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("writing helmValues: %w", err)
	}
	// Two braces that open are only ever within a text, where the second may be written in another way.
	return strings.ReplaceAll(string(text), "{{", `{\u007b`), nil
}
