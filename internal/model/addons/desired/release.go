package desired

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/template"
)

// Release is the desired release on a cluster.
type Release struct {
	// Name is the name of a new HelmReleaseProxy.
	Name string
	Spec addonsv1.HelmReleaseProxySpec
	// Generated reports that the name of the release was generated.
	Generated bool
	// StableDigest identifies values with random parts, see template.StableDigest. It is empty if
	// there are none.
	StableDigest string
	// Kubernetes is the new version of a cluster that is being upgraded, if the release was rendered
	// for it.
	Kubernetes string
}

// For returns the release that the HelmChartProxy named chart wants on a cluster.
func (p *Program) For(chart ctrlclient.ObjectKey, f Facts) (Release, error) {
	data, err := f.data()
	if err != nil {
		return Release{}, err
	}
	spec := p.common(chart, f.Cluster)
	r := Release{Name: objectName(p.spec.ChartName, chart.Name, f.Cluster.Name)}
	if spec.ReleaseName == "" {
		spec.ReleaseName, r.Generated = releaseName(p.spec.ChartName, chart, f.Cluster.Name), true
	}
	if spec.Version, err = p.versionFor(f, data); err != nil {
		return Release{}, err
	}
	if spec.ValuesFrom, err = p.sources(data); err != nil {
		return Release{}, err
	}
	if spec.Values, r.StableDigest, err = p.render(f, data); err != nil {
		return Release{}, err
	}
	r.Spec = spec
	return r, nil
}

// common returns what is the same for all clusters, with the defaults of the API server. It shares
// nothing with the user's object.
func (p *Program) common(chart ctrlclient.ObjectKey, cluster *clusterv1.Cluster) addonsv1.HelmReleaseProxySpec {
	s := p.spec.DeepCopy()
	out := addonsv1.HelmReleaseProxySpec{
		ClusterRef: corev1.ObjectReference{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: cluster.Namespace, Name: cluster.Name,
		},
		ChartName: s.ChartName, RepoURL: s.RepoURL, ReleaseName: s.ReleaseName, ReleaseNamespace: s.ReleaseNamespace,
		ReconcileStrategy: s.ReconcileStrategy, Options: s.Options, Credentials: s.Credentials, TLSConfig: s.TLSConfig,
		Drift: s.Drift, Health: s.Health, Verify: s.Verify, DependsOn: s.DependsOn, Tool: s.Tool,
		ServiceAccountName: s.ServiceAccountName,
	}
	if out.ReleaseNamespace == "" {
		out.ReleaseNamespace = corev1.NamespaceDefault
	}
	if out.Options.Install.CreateNamespace == nil {
		out.Options.Install.CreateNamespace = ptr.To(true)
	}
	if out.Options.Upgrade.MaxHistory == nil {
		out.Options.Upgrade.MaxHistory = ptr.To(10)
	}
	if c := out.Credentials; c != nil {
		c.Key = cmp.Or(c.Key, addonsv1.DefaultCredentialsKey)
		c.Secret.Namespace = cmp.Or(c.Secret.Namespace, chart.Namespace)
	}
	if t := out.TLSConfig; t != nil && t.CASecretRef != nil {
		t.CASecretRef.Namespace = cmp.Or(t.CASecretRef.Namespace, chart.Namespace)
	}
	return out
}

// sources returns valuesFrom with rendered names.
func (p *Program) sources(d template.Data) ([]addonsv1.ValuesSource, error) {
	var out []addonsv1.ValuesSource
	for i, source := range p.spec.ValuesFrom {
		name, err := p.names[i].Render(d)
		if err != nil {
			return nil, fmt.Errorf("rendering spec.valuesFrom[%d].name: %w", i, err)
		}
		source.Name, source.Key = strings.TrimSpace(name), cmp.Or(source.Key, "values.yaml")
		out = append(out, source)
	}
	return out, nil
}

// render renders the values. Without overrides they are the exact output of the template.
func (p *Program) render(f Facts, d template.Data) (values, stable string, err error) {
	templates := p.templates(f.Cluster)
	if slices.ContainsFunc(templates, (*template.Template).Volatile) {
		stable = stableDigest(templates, d)
		if f.Release != nil && f.Release.Annotations[addonsv1.StillValuesAnnotation] == stable {
			return f.Release.Spec.Values, stable, nil
		}
	}
	texts := make([]string, 0, len(templates))
	for _, t := range templates {
		text, err := t.Render(d)
		if err != nil {
			return "", "", fmt.Errorf("rendering values: %w", err)
		}
		texts = append(texts, text)
	}
	if values, err = template.Join(texts...); err != nil {
		return "", "", fmt.Errorf("merging spec.valuesTemplate and spec.overrides: %w", err)
	}
	return values, stable, nil
}

// stableDigest identifies values without their random parts.
func stableDigest(templates []*template.Template, d template.Data) string {
	parts := make([]string, 0, len(templates))
	for _, t := range templates {
		parts = append(parts, t.StableDigest(d))
	}
	return digest(parts...)
}

// templates returns the templates of values for a cluster, lowest precedence first.
func (p *Program) templates(cluster *clusterv1.Cluster) []*template.Template {
	out := []*template.Template{p.values}
	for _, o := range p.overrides {
		if o.values != nil && o.selector.Matches(labels.Set(cluster.Labels)) {
			out = append(out, o.values)
		}
	}
	return out
}

// digest is short, and differs if any part does.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d %s\n", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// unsafeCharacters can't be in the name of an object, but in the name of a chart.
var unsafeCharacters = regexp.MustCompile(`[^a-z0-9]+`)

func sanitizeName(text string) string {
	return strings.Trim(unsafeCharacters.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

// objectName is deterministic, and valid for any names of chart and cluster.
func objectName(chartName, chart, cluster string) string {
	return truncateName(sanitizeName(chartName)+"-"+sanitizeName(cluster), 63, digest(chart, cluster, chartName))
}

// releaseName is deterministic, so that a recreated release finds the objects of its predecessor to
// be its own.
func releaseName(chartName string, chart ctrlclient.ObjectKey, cluster string) string {
	base, _, _ := strings.Cut(path.Base(chartName), ".")
	const longest = 53 // what Helm allows
	return truncateName(sanitizeName(base), longest, digest(chart.Namespace, chart.Name, cluster)[:10])
}

func truncateName(text string, longest int, suffix string) string {
	text = strings.Trim(text[:min(len(text), longest-len(suffix)-1)], "-")
	if text == "" {
		text = "release"
	}
	return text + "-" + suffix
}

// errNoKubernetes is returned until the Kubernetes version of a cluster is known.
var errNoKubernetes = errors.New("spec.versions selects by Kubernetes version, but neither the topology nor the control plane of the cluster has one")
