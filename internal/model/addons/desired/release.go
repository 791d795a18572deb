package desired

import (
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

// Release is what is wanted on a cluster.
type Release struct {
	// Name is what a new HelmReleaseProxy is called.
	Name string
	Spec addonsv1.HelmReleaseProxySpec
	// Generated says that the release's name was made up.
	Generated bool
	// Still identifies values that have something random in them, see template.Still. It is empty if they have not.
	Still string
}

// For is what the HelmChartProxy named chart wants on a cluster.
func (p *Program) For(chart ctrlclient.ObjectKey, f Facts) (Release, error) {
	data, err := f.data()
	if err != nil {
		return Release{}, err
	}
	spec := p.fixed(chart, f.Cluster)
	r := Release{Name: objectName(p.spec.ChartName, chart.Name, f.Cluster.Name)}
	if spec.ReleaseName == "" {
		spec.ReleaseName, r.Generated = releaseName(p.spec.ChartName, chart, f.Cluster.Name), true
	}
	if spec.Version, err = p.choose(f, data); err != nil {
		return Release{}, err
	}
	if spec.ValuesFrom, err = p.sources(data); err != nil {
		return Release{}, err
	}
	if spec.Values, r.Still, err = p.render(f, data); err != nil {
		return Release{}, err
	}
	r.Spec = spec
	return r, nil
}

// fixed is everything that is the same for all clusters, with the defaults that the API server would fill in. It shares nothing with the
// user's object, which must not change when this does.
func (p *Program) fixed(chart ctrlclient.ObjectKey, cluster *clusterv1.Cluster) addonsv1.HelmReleaseProxySpec {
	s := p.spec.DeepCopy()
	out := addonsv1.HelmReleaseProxySpec{
		ClusterRef: corev1.ObjectReference{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: cluster.Namespace, Name: cluster.Name,
		},
		ChartName: s.ChartName, RepoURL: s.RepoURL, ReleaseName: s.ReleaseName, ReleaseNamespace: s.ReleaseNamespace,
		ReconcileStrategy: s.ReconcileStrategy, Options: s.Options, Credentials: s.Credentials, TLSConfig: s.TLSConfig,
		Drift: s.Drift, Health: s.Health, Verify: s.Verify, DependsOn: s.DependsOn, Tool: s.Tool,
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
		c.Key = or(c.Key, addonsv1.DefaultCredentialsKey)
		c.Secret.Namespace = or(c.Secret.Namespace, chart.Namespace)
	}
	if t := out.TLSConfig; t != nil && t.CASecretRef != nil {
		t.CASecretRef.Namespace = or(t.CASecretRef.Namespace, chart.Namespace)
	}
	return out
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// sources are the places of further values, with their names filled in.
func (p *Program) sources(d template.Data) ([]addonsv1.ValuesSource, error) {
	var out []addonsv1.ValuesSource
	for i, source := range p.spec.ValuesFrom {
		name, err := p.names[i].Render(d)
		if err != nil {
			return nil, fmt.Errorf("rendering spec.valuesFrom[%d].name: %w", i, err)
		}
		source.Name, source.Key = strings.TrimSpace(name), or(source.Key, "values.yaml")
		out = append(out, source)
	}
	return out, nil
}

// render makes the values. Without overrides they are what the template says, to the byte.
func (p *Program) render(f Facts, d template.Data) (values, still string, err error) {
	templates := p.templates(f.Cluster)
	if slices.ContainsFunc(templates, (*template.Template).Volatile) {
		still = stillOf(templates, d)
		if f.Release != nil && f.Release.Annotations[addonsv1.StillValuesAnnotation] == still {
			return f.Release.Spec.Values, still, nil
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
	return values, still, nil
}

// stillOf identifies values without what is random in them.
func stillOf(templates []*template.Template, d template.Data) string {
	parts := make([]string, 0, len(templates))
	for _, t := range templates {
		parts = append(parts, t.Still(d))
	}
	return digest(parts...)
}

// templates are those of values for a cluster, the lowest first.
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

// unsafe is everything that can't be in the name of an object. Charts may have it in theirs.
var unsafe = regexp.MustCompile(`[^a-z0-9]+`)

func safe(text string) string {
	return strings.Trim(unsafe.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

// objectName is the same each time, for chart names of any kind and cluster names of any length.
func objectName(chartName, chart, cluster string) string {
	return limit(safe(chartName)+"-"+safe(cluster), 63, digest(chart, cluster, chartName))
}

// releaseName is the same each time, so that a release which is made anew finds what is left of the old one to be its own.
func releaseName(chartName string, chart ctrlclient.ObjectKey, cluster string) string {
	base, _, _ := strings.Cut(path.Base(chartName), ".")
	const longest = 53 // what Helm allows
	return limit(safe(base), longest, digest(chart.Namespace, chart.Name, cluster)[:10])
}

func limit(text string, longest int, suffix string) string {
	text = strings.Trim(text[:min(len(text), longest-len(suffix)-1)], "-")
	if text == "" {
		text = "release"
	}
	return text + "-" + suffix
}

// errNoKubernetes says that a choice has to wait.
var errNoKubernetes = errors.New("spec.versions selects by Kubernetes version, but neither the topology nor the control plane of the cluster has one")
