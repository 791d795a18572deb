// Package desired computes what a HelmChartProxy wants on a cluster: the spec of a
// HelmReleaseProxy. It writes nothing and is deterministic, so that a controller can act on the
// result and a command can show it.
//
// Start with Compile, which parses a spec once, then call Read and Program.For for each cluster.
package desired

import (
	"strings"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/template"
)

// Program is a spec with parsed templates, selectors and ranges. It is safe for concurrent use.
type Program struct {
	spec      *addonsv1.HelmChartProxySpec
	values    *template.Template
	version   *template.Template // nil if there is none
	overrides []override
	names     []*template.Template
	rules     []rule
	uses      template.Uses
}

type override struct {
	selector labels.Selector
	values   *template.Template // nil if there is none
	version  string
}

type rule struct {
	kubernetes *semver.Constraints
	version    string
}

// Compile parses a spec and returns every problem in it.
func Compile(spec *addonsv1.HelmChartProxySpec) (*Program, field.ErrorList) {
	c := compiler{path: field.NewPath("spec")}
	p := &Program{spec: spec, values: c.template(spec.ValuesTemplate, "valuesTemplate")}
	if spec.VersionTemplate != "" {
		p.version = c.stableTemplate(spec.VersionTemplate, "versionTemplate")
	}
	for i, v := range spec.Versions {
		p.rules = append(p.rules, rule{c.constraint(v.Kubernetes, i), v.Version})
	}
	for i, source := range spec.ValuesFrom {
		c.path = field.NewPath("spec", "valuesFrom").Index(i)
		p.names = append(p.names, c.stableTemplate(source.Name, "name"))
	}
	for i, o := range spec.Overrides {
		c.path = field.NewPath("spec", "overrides").Index(i)
		next := override{selector: c.selector(&o.ClusterSelector, "clusterSelector"), version: o.Version}
		if o.ValuesTemplate != "" {
			next.values = c.template(o.ValuesTemplate, "valuesTemplate")
		}
		p.overrides = append(p.overrides, next)
	}
	p.uses = p.findUses()
	return p, c.problems
}

// Uses returns what the templates refer to.
func (p *Program) Uses() template.Uses { return p.uses }

func (p *Program) findUses() template.Uses {
	var u template.Uses
	for _, t := range append(p.valueTemplates(), p.names...) {
		u = u.Or(t.Uses())
	}
	if p.version != nil {
		u = u.Or(p.version.Uses())
	}
	if len(p.rules) > 0 {
		version := template.Use{Any: true, Status: true}
		u = u.Or(template.Uses{Cluster: template.Use{Any: true}, ControlPlane: version})
	}
	return u
}

// valueTemplates returns all templates of values.
func (p *Program) valueTemplates() []*template.Template {
	out := []*template.Template{p.values}
	for _, o := range p.overrides {
		if o.values != nil {
			out = append(out, o.values)
		}
	}
	return out
}

// compiler collects problems.
type compiler struct {
	path     *field.Path
	problems field.ErrorList
}

// invalid records a problem without the value, which may be secret. Errors about templates name the
// line.
func (c *compiler) invalid(path *field.Path, err error) {
	c.problems = append(c.problems, field.Invalid(path, field.OmitValueType{}, err.Error()))
}

func (c *compiler) template(text, child string) *template.Template {
	t, err := template.Parse(child, text)
	if err != nil {
		c.invalid(c.path.Child(child), err)
		return empty
	}
	return t
}

// stableTemplate rejects templates with random or time-dependent results.
func (c *compiler) stableTemplate(text, child string) *template.Template {
	t := c.template(text, child)
	if t.Volatile() {
		c.problems = append(c.problems, field.Forbidden(c.path.Child(child), "must not use functions with random or time-dependent results"))
	}
	return t
}

func (c *compiler) constraint(text string, i int) *semver.Constraints {
	parsed, err := semver.NewConstraint(text)
	if err != nil || strings.TrimSpace(text) == "" {
		c.problems = append(c.problems, field.Invalid(c.path.Child("versions").Index(i).Child("kubernetes"), text, `must be a range such as ">= 1.35, < 1.37"`))
		return nil
	}
	return parsed
}

func (c *compiler) selector(s *metav1.LabelSelector, child string) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		c.invalid(c.path.Child(child), err)
		return labels.Nothing()
	}
	return parsed
}

// empty replaces a template that can't be parsed.
var empty, _ = template.Parse("", "")
