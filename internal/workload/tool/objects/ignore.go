package objects

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// Pointers returns the fields of an object that rules ignore.
func Pointers(rules []addonsv1.IgnoreRule, o *unstructured.Unstructured) [][]string {
	var out [][]string
	gvk := o.GroupVersionKind()
	matches := func(want, have string) bool { return want == "" || want == have }
	for _, r := range rules {
		if !matches(r.Group, gvk.Group) || !matches(r.Kind, gvk.Kind) || !matches(r.Name, o.GetName()) || !matches(r.Namespace, o.GetNamespace()) {
			continue
		}
		for _, path := range r.Paths {
			out = append(out, splitPointer(path))
		}
	}
	return out
}

// splitPointer splits a JSON pointer into unescaped keys.
func splitPointer(path string) []string {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts
}

// WithLive returns an object with the fields at paths as they are on the cluster. They can't be
// left out: the API server removes a field whose only owner stops applying it.
func WithLive(wanted, live *unstructured.Unstructured, paths [][]string) *unstructured.Unstructured {
	if len(paths) == 0 {
		return wanted
	}
	out := wanted.DeepCopy()
	for _, path := range paths {
		if value, ok := fieldAt(live.Object, path); ok {
			setField(out.Object, path, value)
		} else {
			removeField(out.Object, path)
		}
	}
	return out
}

// Without returns an object without the fields at paths.
func Without(u *unstructured.Unstructured, paths [][]string) *unstructured.Unstructured {
	out := u.DeepCopy()
	for _, path := range paths {
		removeField(out.Object, path)
	}
	return out
}

func fieldAt(in any, path []string) (any, bool) {
	for _, key := range path {
		switch v := in.(type) {
		case map[string]any:
			next, ok := v[key]
			if !ok {
				return nil, false
			}
			in = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			in = v[i]
		default:
			return nil, false
		}
	}
	return in, true
}

// setField sets a field whose parent exists.
func setField(in any, path []string, value any) {
	parent, ok := fieldAt(in, path[:len(path)-1])
	if !ok {
		return
	}
	last := path[len(path)-1]
	switch v := parent.(type) {
	case map[string]any:
		v[last] = value
	case []any:
		if i, err := strconv.Atoi(last); err == nil && i >= 0 && i < len(v) {
			v[i] = value
		}
	}
}

func removeField(in any, path []string) {
	parent, ok := fieldAt(in, path[:len(path)-1])
	if !ok {
		return
	}
	last := path[len(path)-1]
	switch v := parent.(type) {
	case map[string]any:
		delete(v, last)
	case []any:
		i, err := strconv.Atoi(last)
		if err != nil || i < 0 || i >= len(v) {
			return
		}
		setField(in, path[:len(path)-1], slices.Delete(v, i, i+1))
	}
}
