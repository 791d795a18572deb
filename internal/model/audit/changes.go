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
		if harmless.MatchString(path) {
			c.From, c.To = text(from), text(to)
		}
		out = append(out, c)
	}
	return out
}

// tree decodes a spec as JSON. It can't fail, because a spec can always be encoded.
func tree(spec *anywherev1.ClusterSpec) any {
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
