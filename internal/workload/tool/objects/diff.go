package objects

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/base/text"
)

const (
	// maxLines limits the diff of one object.
	maxLines = 200
	// maxValueLength limits a value in a diff.
	maxValueLength = 200
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// WithoutServerFields returns an object without its status and the metadata that the API server
// maintains.
func WithoutServerFields(u *unstructured.Unstructured) map[string]any {
	out := u.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "status")
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	if annotations := out.GetAnnotations(); annotations != nil && len(annotations) == 0 {
		unstructured.RemoveNestedField(out.Object, "metadata", "annotations")
	}
	return out.Object
}

// FieldDiff returns a line for each field that differs, sorted by path.
func FieldDiff(before, after map[string]any) string {
	d := &differ{secret: isSecret(before) || isSecret(after)}
	if before == nil {
		d.onlyIn("+", "", after)
	} else {
		d.changed("", before, after)
	}
	if more := len(d.lines) - maxLines; more > 0 {
		d.lines = append(d.lines[:maxLines], fmt.Sprintf("… and %d more", more))
	}
	return strings.Join(d.lines, "\n")
}

func isSecret(o map[string]any) bool { return o["kind"] == "Secret" && o["apiVersion"] == "v1" }

type differ struct {
	secret bool
	lines  []string
}

func (d *differ) changed(path string, before, after any) {
	left, isMap := before.(map[string]any)
	right, both := after.(map[string]any)
	if isMap && both {
		d.maps(path, left, right)
		return
	}
	first, isList := before.([]any)
	second, both := after.([]any)
	if isList && both {
		d.lists(path, first, second)
		return
	}
	if old, now := asText(before), asText(after); old != now {
		d.line("", path, d.show(path, old)+" → "+d.show(path, now))
	}
}

func (d *differ) maps(path string, before, after map[string]any) {
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range sortedKeys(names) {
		old, had := before[name]
		now, has := after[name]
		switch next := join(path, name); {
		case had && has:
			d.changed(next, old, now)
		case had:
			d.onlyIn("-", next, old)
		default:
			d.onlyIn("+", next, now)
		}
	}
}

func (d *differ) lists(path string, before, after []any) {
	for i := range max(len(before), len(after)) {
		switch next := fmt.Sprintf("%s[%d]", path, i); {
		case i < len(before) && i < len(after):
			d.changed(next, before[i], after[i])
		case i < len(before):
			d.onlyIn("-", next, before[i])
		default:
			d.onlyIn("+", next, after[i])
		}
	}
}

// onlyIn adds all fields of a value that exists on one side only.
func (d *differ) onlyIn(sign, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			d.onlyIn(sign, join(path, name), v[name])
		}
	case []any:
		for i, item := range v {
			d.onlyIn(sign, fmt.Sprintf("%s[%d]", path, i), item)
		}
	default:
		d.line(sign, path, d.show(path, asText(v)))
	}
}

func (d *differ) line(sign, path, rest string) {
	if sign != "" {
		sign += " "
	}
	d.lines = append(d.lines, sign+path+": "+rest)
}

// show masks the data of Secrets and truncates long values.
func (d *differ) show(path, value string) string {
	if d.secret && (strings.HasPrefix(path, "data") || strings.HasPrefix(path, "stringData")) {
		return masked
	}
	return text.TruncateTo(value, maxValueLength)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	if strings.ContainsAny(name, "./") {
		return path + "[" + name + "]"
	}
	return path + "." + name
}

func asText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
