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
)

// harmless matches fields whose values are versions, counts or names of objects. Records omit all
// other values, because proxies, for example, may contain passwords.
var harmless = regexp.MustCompile(`(^|\.)(kubernetesVersion|eksaVersion|count|minCount|maxCount|machineGroupRef\.(kind|name)|name)$`)

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
			c.From, c.To = text(from), text(to)
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

func text(v any) string {
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
