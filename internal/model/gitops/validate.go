package gitops

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/document"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Validate returns every problem below a path: of specs, of files that can't be read, and of
// kustomizations that leave out a cluster or name a missing file.
func Validate(fsys fs.FS, dir string) ([]Problem, error) {
	t, err := load(fsys, dir)
	if err != nil {
		return nil, err
	}
	f := t.fleet()
	problems := f.Problems
	for _, c := range f.Clusters {
		problems = append(problems, c.Problems...)
	}
	problems = append(problems, t.missingResources()...)
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if order := strings.Compare(a.File, b.File); order != 0 {
			return order
		}
		return a.Line - b.Line
	})
	return slices.Compact(problems), nil
}

// locate converts a violation to a problem at the field that it names.
func (t *tree) locate(loc Location, v spec.Violation) Problem {
	kind, name, field := anywherev1.ClusterKind, loc.Cluster, v.Path
	if object, rest, found := strings.Cut(v.Path, ": "); found {
		kind, name, _ = strings.Cut(object, "/")
		field = rest
	}
	for _, file := range t.specFiles(loc) {
		if line := document.Line(t.files[file], kind, name, field); line > 0 {
			return Problem{File: file, Line: line, Message: v.String()}
		}
	}
	return Problem{File: loc.File, Message: v.String()}
}

// numericVersions reports versions that commands read as text and the API server rejects, because
// Flux sends them as numbers.
func (t *tree) numericVersions(loc Location) []Problem {
	objects, err := document.Objects(t.files[loc.File])
	if err != nil {
		return nil
	}
	var problems []Problem
	for _, object := range objects {
		content, _ := object["spec"].(map[string]any)
		if object["kind"] != anywherev1.ClusterKind {
			continue
		}
		for _, field := range numericFields(content) {
			line := document.Line(t.files[loc.File], anywherev1.ClusterKind, loc.Cluster, field)
			problems = append(problems, Problem{loc.File, line, field + ": Flux reads a number (put it in quotes)"})
		}
	}
	return problems
}

// numericFields returns the versions in the spec of a Cluster that are not text.
func numericFields(content map[string]any) []string {
	var fields []string
	if isNumber(content["kubernetesVersion"]) {
		fields = append(fields, "spec.kubernetesVersion")
	}
	groups, _ := content["workerNodeGroupConfigurations"].([]any)
	for i, one := range groups {
		group, _ := one.(map[string]any)
		if isNumber(group["kubernetesVersion"]) {
			fields = append(fields, fmt.Sprintf("spec.workerNodeGroupConfigurations[%d].kubernetesVersion", i))
		}
	}
	return fields
}

func isNumber(value any) bool {
	_, number := value.(json.Number)
	return number
}

// checkApplied reports kustomizations that leave out a cluster.
func (t *tree) checkApplied(loc Location) []Problem {
	var problems []Problem
	_ = t.eachKustomization(loc, func(file, child string) error {
		resources, err := resourcesOf(t.files[file])
		if err == nil && !slices.ContainsFunc(resources, func(one string) bool { return refersTo(file, one, child, loc.File) }) {
			message := fmt.Sprintf("cluster %q is not listed (add %s to resources)", loc.Cluster, relative(file, child))
			problems = append(problems, Problem{File: file, Message: message})
		}
		return nil
	})
	return problems
}

// missingResources reports kustomizations that can't be read or name a file that doesn't exist,
// either of which keeps Flux from applying anything.
func (t *tree) missingResources() []Problem {
	var problems []Problem
	for _, file := range t.kustomizations() {
		resources, err := resourcesOf(t.files[file])
		if err != nil {
			problems = append(problems, Problem{File: file, Message: err.Error()})
		}
		for _, resource := range resources {
			target := path.Join(path.Dir(file), resource)
			if isLocal(resource) && within(target, t.root) && !t.exists(target) {
				problems = append(problems, Problem{File: file, Message: fmt.Sprintf("resource %q does not exist", resource)})
			}
		}
	}
	return problems
}

// isLocal reports whether a resource is a path, not an address such as github.com/org/repo.
func isLocal(resource string) bool {
	host, _, nested := strings.Cut(resource, "/")
	return !strings.ContainsAny(resource, ":?") && (!nested || !strings.Contains(strings.Trim(host, "."), "."))
}

// resourcesOf returns the resources of a kustomization.
func resourcesOf(data []byte) ([]string, error) {
	objects, err := document.Objects(data)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, object := range objects {
		resources, _ := object["resources"].([]any)
		for _, resource := range resources {
			if text, ok := resource.(string); ok {
				all = append(all, text)
			}
		}
	}
	return all, nil
}
