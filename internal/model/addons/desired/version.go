package desired

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/drover-dev/drover/internal/model/addons/template"
)

// versionFor returns the version for a cluster: that of the last matching override that sets one,
// else of the first rule for its Kubernetes version, else of the template, else the common one.
func (p *Program) versionFor(f Facts, d template.Data) (string, error) {
	version := ""
	for _, o := range p.overrides {
		if o.version != "" && o.selector.Matches(labels.Set(f.Cluster.Labels)) {
			version = o.version
		}
	}
	if version != "" {
		return version, nil
	}
	version, err := p.byKubernetes(f.kubernetes())
	if err != nil || version != "" {
		return version, err
	}
	if p.version == nil {
		return p.spec.Version, nil
	}
	text, err := p.version.Render(d)
	if err != nil {
		return "", fmt.Errorf("rendering spec.versionTemplate: %w", err)
	}
	return strings.TrimSpace(text), nil
}

// byKubernetes returns the version of the first matching rule, or an empty string. A pre-release
// counts as its release.
func (p *Program) byKubernetes(text string) (string, error) {
	if len(p.rules) == 0 {
		return "", nil
	}
	if text == "" {
		return "", errNoKubernetes
	}
	parsed, err := semver.NewVersion(text)
	if err != nil {
		return "", fmt.Errorf("parsing Kubernetes version %q: %w", text, err)
	}
	core := semver.New(parsed.Major(), parsed.Minor(), parsed.Patch(), "", "")
	for _, r := range p.rules {
		if r.kubernetes != nil && r.kubernetes.Check(core) {
			return r.version, nil
		}
	}
	return "", nil
}
