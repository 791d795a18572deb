package objects

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// Pointers are the fields of an object that others may change.
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

// splitPointer reads a JSON pointer.
func splitPointer(path string) []string {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts
}

// WithLive returns an object with the fields of paths as they are on the cluster. They can't be left out: if nobody else has claimed them,
// the API server would take that for a wish to remove them.
func WithLive(wanted, live *unstructured.Unstructured, paths [][]string) *unstructured.Unstructured {
	if len(paths) == 0 {
		return wanted
	}
	out := wanted.DeepCopy()
	for _, path := range paths {
		if value, ok := lookAt(live.Object, path); ok {
			put(out.Object, path, value)
		} else {
			drop(out.Object, path)
		}
	}
	return out
}

// Without returns an object that lacks fields.
func Without(u *unstructured.Unstructured, paths [][]string) *unstructured.Unstructured {
	out := u.DeepCopy()
	for _, path := range paths {
		drop(out.Object, path)
	}
	return out
}

func lookAt(in any, path []string) (any, bool) {
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

// put sets a field whose parent is there.
func put(in any, path []string, value any) {
	parent, ok := lookAt(in, path[:len(path)-1])
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

func drop(in any, path []string) {
	parent, ok := lookAt(in, path[:len(path)-1])
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
		put(in, path[:len(path)-1], slices.Delete(v, i, i+1))
	}
}
