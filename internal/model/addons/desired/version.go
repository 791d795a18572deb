package desired

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/drover-dev/drover/internal/model/addons/template"
)

// choose is the version for a cluster: that of the last override that has one, else of the first rule for its version of Kubernetes, else
// what the template says, else the one for all.
func (p *Program) choose(f Facts, d template.Data) (string, error) {
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

// byKubernetes is empty if no rule is for the version. A pre-release counts as what it will be.
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
