package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
)

// harmless matches fields whose values are versions, counts or names of objects. Records omit all
// other values, because proxies, for example, may contain passwords.
var harmless = regexp.MustCompile(`(^|\.)(kubernetesVersion|eksaVersion|count|minCount|maxCount|machineGroupRef\.(kind|name)|name)$`)

// maxChanges and maxText bound the changes in a record.
const (
	maxChanges = 50
	maxText    = 256
)

// Changes returns the fields in which two specs differ, sorted by path. Paths contain the names of
// worker groups instead of indexes.
func Changes(old, asked any) []droverv1.AuditedChange {
	before, after := map[string]any{}, map[string]any{}
	flatten("spec", tree(old), before)
	flatten("spec", tree(asked), after)
	var out []droverv1.AuditedChange
	paths := slices.Sorted(maps.Keys(before))
	for path := range after {
		if _, both := before[path]; !both {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		from, to := before[path], after[path]
		if equality.Semantic.DeepEqual(from, to) {
			continue
		}
		c := droverv1.AuditedChange{Path: path}
		if harmless.MatchString(path) {
			c.From, c.To = valueText(from), valueText(to)
		}
		out = append(out, c)
	}
	return out
}

// switches are the annotations that decide what happens to an object, and are therefore recorded.
func switches() []string {
	return []string{
		anywherev1.PausedAnnotation, anywherev1.AllowDeleteWhenPausedAnnotation, anywherev1.ManagedByCLIAnnotation,
		anywherev1.SkipVersionSkewCheckAnnotation,
	}
}

// Switched returns the switches in which the annotations of an object differ, without their values.
func Switched(old, asked map[string]string) []droverv1.AuditedChange {
	var out []droverv1.AuditedChange
	for _, key := range switches() {
		if old[key] != asked[key] {
			out = append(out, droverv1.AuditedChange{Path: annotationPath(key)})
		}
	}
	return out
}

func annotationPath(key string) string { return "metadata.annotations[" + key + "]" }

// summarize returns as many changes as fit into a record, and counts the others by field of the
// spec, so that many changes of one field can't hide that another was changed. The schema bounds
// the number of fields.
func summarize(all []droverv1.AuditedChange) []droverv1.AuditedChange {
	var out []droverv1.AuditedChange
	for _, c := range bounded(all, maxChanges) {
		out = append(out, droverv1.AuditedChange{
			Path: text.TruncateTo(c.Path, maxText), From: text.TruncateTo(c.From, maxText), To: text.TruncateTo(c.To, maxText),
		})
	}
	more := map[string]int{}
	for _, c := range all[len(out):] {
		more[topField(c.Path)]++
	}
	for _, field := range slices.Sorted(maps.Keys(more)) {
		out = append(out, droverv1.AuditedChange{Path: fmt.Sprintf("%s (%d more)", field, more[field])})
	}
	return out
}

// topField returns the field of the spec that contains a path: "spec.users" of
// "spec.users[0].name".
func topField(path string) string {
	section, rest, _ := strings.Cut(path, ".")
	if end := strings.IndexAny(rest, ".["); end >= 0 {
		rest = rest[:end]
	}
	return section + "." + rest
}

// tree decodes a spec as JSON. It can't fail, because a spec can always be encoded.
func tree(spec any) any {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil
	}
	var out any
	_ = json.Unmarshal(data, &out)
	return out
}

// flatten collects the leaves of a tree by path.
func flatten(path string, v any, into map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			flatten(path+"."+key, child, into)
		}
	case []any:
		for i, child := range v {
			flatten(fmt.Sprintf("%s[%s]", path, element(i, child)), child, into)
		}
	default:
		into[path] = v
	}
}

// element returns the name of an element of a list, or its index.
func element(i int, v any) string {
	if m, ok := v.(map[string]any); ok {
		if name, ok := m["name"].(string); ok && name != "" {
			return name
		}
	}
	return fmt.Sprint(i)
}

func valueText(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// action returns the action that describes a set of changes.
func action(changes []droverv1.AuditedChange) droverv1.AuditAction {
	ends := func(suffixes ...string) bool {
		return slices.ContainsFunc(changes, func(c droverv1.AuditedChange) bool {
			return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(c.Path, s) })
		})
	}
	switch {
	case ends(".kubernetesVersion", ".eksaVersion"):
		return droverv1.Upgraded
	case ends(".count", ".minCount", ".maxCount"):
		return droverv1.Scaled
	default:
		return droverv1.Changed
	}
}

// switchAction returns the action that describes a change of switches.
func switchAction(was, is bool) droverv1.AuditAction {
	switch {
	case !was && is:
		return droverv1.Paused
	case was && !is:
		return droverv1.Resumed
	default:
		return droverv1.Changed
	}
}
