package gitops

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/model/document"
)

// kustomizationNames are the names that kustomize accepts.
func kustomizationNames() []string {
	return []string{kustomizationFile, "kustomization.yml", "Kustomization"}
}

// kustomizationHeader starts a new kustomization.
const kustomizationHeader = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"

// emptyKustomization keeps a directory in Git.
const emptyKustomization = kustomizationHeader + "# Flux fails if this directory is missing, instead of deleting what was in it.\nresources: []\n"

// kustomization returns the kustomization of a directory, or the empty string.
func (t *tree) kustomization(dir string) string {
	for _, name := range kustomizationNames() {
		if _, exists := t.files[path.Join(dir, name)]; exists {
			return path.Join(dir, name)
		}
	}
	return ""
}

// newKustomization returns a kustomization of files in its directory.
func newKustomization(files []string) []byte {
	var out bytes.Buffer
	out.WriteString(kustomizationHeader + "resources:\n")
	for _, file := range files {
		fmt.Fprintf(&out, "- %s\n", path.Base(file))
	}
	return out.Bytes()
}

// include adds a cluster to the kustomizations of its directory and of those around it, up to the
// path. Flux generates a kustomization where there is none.
func (t *tree) include(changes Changes, loc Location) error {
	return t.apply(changes).eachKustomization(loc, func(file, child string) error {
		return t.edit(changes, file, func(resources []any) []any {
			if slices.ContainsFunc(resources, func(one any) bool { return refersTo(file, one, child, loc.File) }) {
				return resources
			}
			return append(resources, relative(file, child))
		})
	})
}

// exclude removes files that will not exist from all kustomizations, because kustomize fails if a
// resource doesn't exist. It skips kustomizations that can't be read: kustomize fails there anyway.
func (t *tree) exclude(changes Changes) error {
	after := t.apply(changes)
	for _, file := range after.kustomizations() {
		gone := func(resource string) bool {
			target := path.Join(path.Dir(file), resource)
			return t.exists(target) && !after.exists(target)
		}
		if resources, err := resourcesOf(after.files[file]); err != nil || !slices.ContainsFunc(resources, gone) {
			continue
		}
		err := t.edit(changes, file, func(resources []any) []any {
			return slices.DeleteFunc(resources, func(one any) bool {
				name, ok := one.(string)
				return ok && gone(name)
			})
		})
		if err != nil {
			return fmt.Errorf("changing %q: %w", file, err)
		}
	}
	return nil
}

// kustomizations returns the kustomizations below the path.
func (t *tree) kustomizations() []string {
	return filter(t.names, func(name string) bool { return slices.Contains(kustomizationNames(), path.Base(name)) })
}

// exists reports whether there is a file, or a directory with a kustomization.
func (t *tree) exists(name string) bool {
	_, file := t.files[name]
	return file || t.kustomization(name) != ""
}

// eachKustomization calls a function for each kustomization that should lead to a cluster, from the
// inside to the outside, with the file or directory that it should have as a resource.
func (t *tree) eachKustomization(loc Location, do func(file, child string) error) error {
	child := loc.File
	for dir := loc.Dir; ; dir = path.Dir(dir) {
		if file := t.kustomization(dir); file != "" {
			if err := do(file, child); err != nil {
				return fmt.Errorf("changing %q: %w", file, err)
			}
			child = dir
		}
		if dir == loc.Path || dir == "." {
			return nil
		}
	}
}

// relative returns a path as it is written in a kustomization.
func relative(kustomization, name string) string {
	dir := path.Dir(kustomization)
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}

// refersTo reports whether an entry of a kustomization is one of several files or directories.
func refersTo(kustomization string, entry any, names ...string) bool {
	text, ok := entry.(string)
	return ok && slices.Contains(names, path.Join(path.Dir(kustomization), text))
}

// edit changes the resources of a kustomization.
func (t *tree) edit(changes Changes, file string, change func([]any) []any) error {
	before, changed := changes[file]
	if !changed {
		before = t.files[file]
	}
	after, err := document.Edit(before, func(object map[string]any) {
		resources, _ := object["resources"].([]any)
		if edited := change(slices.Clone(resources)); len(edited) != len(resources) {
			object["resources"] = edited
		}
	})
	if err != nil {
		return err
	}
	t.set(changes, file, after)
	return nil
}
