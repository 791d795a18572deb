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

// telling are fields whose values are versions, numbers or names of objects. All others are told without their values, as proxies have
// passwords in them.
var telling = regexp.MustCompile(`(^|\.)(kubernetesVersion|eksaVersion|count|minCount|maxCount|machineGroupRef\.(kind|name)|name)$`)

// Changes are the fields in which two specs differ, in the order of their paths. Workers are told apart by the names of their groups.
func Changes(old, asked *anywherev1.ClusterSpec) []droverv1.AuditedChange {
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
		if telling.MatchString(path) {
			c.From, c.To = text(from), text(to)
		}
		out = append(out, c)
	}
	return out
}

// tree is a spec as JSON has it. A spec came as JSON, so this can't fail.
func tree(spec *anywherev1.ClusterSpec) any {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil
	}
	var out any
	_ = json.Unmarshal(data, &out)
	return out
}

// flatten lists the leaves of a tree by their paths.
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

// element is the name of a list's element, or its place.
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

// action is what to call a set of changes.
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
