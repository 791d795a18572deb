package spec

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// MaxSize is the maximum size of a file. Clusters that an API server can store are much smaller.
const MaxSize = 1 << 20

// Read parses a file: YAML or JSON documents in any order, one of them a Cluster. The error is
// Violations with every syntax error, unknown field, value of the wrong type and duplicate object.
// It neither sets defaults nor validates. Objects of other API groups and those that the Cluster
// does not reference are listed in Ignored.
func Read(data []byte) (*Config, error) {
	c, problems := read(data)
	if len(problems) > 0 {
		return nil, problems
	}
	return c, nil
}

// Check parses the file of a new cluster, sets defaults and validates, with additional rules. It
// reports every problem at once: an unknown field does not hide an invalid count. If there is a
// problem, the Config may lack objects.
func Check(data []byte, more ...func(*Config) Violations) (*Config, Violations) {
	c, problems := read(data)
	if c.Cluster == nil {
		return c, problems
	}
	Default(c)
	problems = append(problems, notWithin(append(Validate(c), ValidateNew(c.Cluster)...), problems)...)
	for _, rule := range more {
		problems = append(problems, notWithin(rule(c), problems)...)
	}
	return c, problems
}

// notWithin removes violations that result from a value that could not be parsed.
func notWithin(all, read Violations) Violations {
	return slices.DeleteFunc(all, func(v Violation) bool {
		return slices.ContainsFunc(read, func(r Violation) bool { return r.Path != "" && within(v.Path, r.Path) })
	})
}

// within reports whether a path equals another one or is below it.
func within(path, other string) bool {
	rest, below := strings.CutPrefix(path, other)
	return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func read(data []byte) (*Config, Violations) {
	r := &reader{config: &Config{}, seen: map[string]bool{}}
	if len(data) > MaxSize {
		r.problem("", "remove objects that do not belong to the cluster", "the file has %d bytes; the maximum is %d", len(data), MaxSize)
		return r.config, r.problems
	}
	documents, problems := parse(data)
	r.problems = problems
	for _, d := range documents {
		r.document(d)
	}
	r.assemble()
	return r.config, r.problems
}

// reader collects the objects of a file.
type reader struct {
	config   *Config
	objects  []client.Object
	seen     map[string]bool
	problems Violations
}

func (r *reader) problem(path, remedy, format string, args ...any) {
	r.problems = append(r.problems, Violation{Path: path, Problem: fmt.Sprintf(format, args...), Remedy: remedy})
}

// document adds a document, or each item of a List as kubectl prints it.
func (r *reader) document(d document) {
	if d.text("kind") == "List" && d.text("apiVersion") == "v1" {
		items, _ := d.content["items"].([]any)
		for i, item := range items {
			where := fmt.Sprintf("%s, item %d", d.where, i+1)
			content, ok := item.(map[string]any)
			if !ok {
				r.problem(where, "an item is an object with apiVersion, kind and metadata", "is not an object")
				continue
			}
			r.object(document{where: where, content: content})
		}
		return
	}
	r.object(d)
}

func (r *reader) object(d document) {
	top := &fitting{}
	top.rename(d.content, []string{"apiVersion", "kind", "metadata"}, "")
	kind, version := d.text("kind"), d.text("apiVersion")
	if kind == "" || version == "" {
		r.problem(d.where, "set both, such as apiVersion: "+anywherev1.GroupVersion.String()+" and kind: Cluster", "has no kind or no apiVersion")
		return
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil || gv.Group != anywherev1.GroupVersion.Group {
		r.config.Ignored = append(r.config.Ignored, d.id())
		return
	}
	if gv != anywherev1.GroupVersion {
		r.problem(d.id()+": apiVersion", "use "+anywherev1.GroupVersion.String(), "unknown version %s", printable(gv.Version))
		return
	}
	r.problems = append(r.problems, top.problems...)
	r.config.Warnings = append(r.config.Warnings, top.warnings...)
	r.own(d, kind)
}

// own adds an object of the API group.
func (r *reader) own(d document, kind string) {
	object := newObject(kind)
	if object == nil {
		if slices.Contains(absentKinds, kind) {
			r.config.Ignored = append(r.config.Ignored, d.id())
			return
		}
		r.problem(d.id(), remedyForKind(kind), "%s is not supported", printable(kind))
		return
	}
	problems, warnings := d.into(object)
	r.problems = append(r.problems, problems...)
	r.config.Warnings = append(r.config.Warnings, warnings...)
	strip(object)
	if object.GetName() == "" {
		r.problem(d.id()+": metadata.name", "set a name", "is not set")
		return
	}
	if id := kind + "/" + object.GetName(); r.seen[id] {
		r.problem(id, "keep one of them", "appears more than once")
		return
	}
	r.seen[kind+"/"+object.GetName()] = true
	r.objects = append(r.objects, object)
}

// assemble selects the Cluster and the objects that it references.
func (r *reader) assemble() {
	var clusters []string
	for _, o := range r.objects {
		if kindOf(o) == anywherev1.ClusterKind {
			r.config.add(o)
			clusters = append(clusters, o.GetName())
		}
	}
	switch {
	case len(clusters) == 1:
		r.named(References(r.config.Cluster))
	case len(clusters) > 1:
		r.config.Cluster = nil
		r.problem("", "use one file per cluster", "the file has %d Clusters: %s", len(clusters), printable(strings.Join(clusters, ", ")))
	case len(r.problems) == 0:
		r.problem("", "add an object with apiVersion: "+anywherev1.GroupVersion.String()+" and kind: Cluster", "the file has no Cluster")
	}
}

func (r *reader) named(refs []anywherev1.Ref) {
	for _, o := range r.objects {
		ref := anywherev1.Ref{Kind: kindOf(o), Name: o.GetName()}
		switch {
		case ref.Kind == anywherev1.ClusterKind:
		case slices.Contains(refs, ref):
			r.config.add(o)
		default:
			r.config.Ignored = append(r.config.Ignored, ref.Kind+"/"+ref.Name)
		}
	}
}
