package build

import (
	"encoding/json"
	"fmt"
	"strings"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// The release of the Pod network.
const (
	networkChart     = "cni"
	networkNamespace = "kube-system"
)

// network builds the HelmChartProxy that installs the Pod network on this cluster only. There is
// none if the user manages the network.
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

// networkValues returns the values of the spec for the chart, escaped so that they are not
// evaluated as a template.
func networkValues(c *anywherev1.Cluster) (string, error) {
	config := c.Spec.ClusterNetwork.CNIConfig
	if config == nil || config.Cilium == nil || config.Cilium.HelmValues == nil || len(config.Cilium.HelmValues.Raw) == 0 {
		return "", nil
	}
	var values map[string]any
	if err := json.Unmarshal(config.Cilium.HelmValues.Raw, &values); err != nil {
		return "", fmt.Errorf("decoding helmValues: %w", err)
	}
	text, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("encoding helmValues: %w", err)
	}
	// Two opening braces occur only within strings, where the second one can be escaped.
	return strings.ReplaceAll(string(text), "{{", `{\u007b`), nil
}
