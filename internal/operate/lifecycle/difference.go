package lifecycle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Difference is one field that changes.
type Difference struct {
	Object string `json:"object"`
	Path   string `json:"path"`
	From   string `json:"from"`
	To     string `json:"to"`
}

// String formats the difference as a line.
func (d Difference) String() string {
	return fmt.Sprintf("%s %s: %s → %s", d.Object, d.Path, cmp.Or(d.From, "none"), cmp.Or(d.To, "none"))
}

// changeLines returns the lines about differences in a plan.
func changeLines(all []Difference) []string {
	out := make([]string, 0, len(all))
	for _, d := range all {
		out = append(out, "changes "+d.String())
	}
	return out
}

// Compare returns the fields that differ between two versions of an object: those of the spec and
// the annotations.
func Compare(name string, from, to *unstructured.Unstructured) []Difference {
	out := differences(name, from.Object["spec"], to.Object["spec"])
	before, after := from.GetAnnotations(), to.GetAnnotations()
	all := maps.Clone(before)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, after)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if before[key] != after[key] && !strings.HasPrefix(key, "audit.drover.dev/") {
			out = append(out, Difference{Object: name, Path: "metadata.annotations." + key, From: before[key], To: after[key]})
		}
	}
	return out
}

// differences compares two JSON values field by field.
func differences(object string, from, to any) []Difference {
	flatFrom, flatTo := map[string]string{}, map[string]string{}
	flatten("spec", from, flatFrom)
	flatten("spec", to, flatTo)
	var out []Difference
	for path, old := range flatFrom {
		if flatTo[path] != old {
			out = append(out, Difference{Object: object, Path: path, From: old, To: flatTo[path]})
		}
	}
	for path, now := range flatTo {
		if _, there := flatFrom[path]; !there {
			out = append(out, Difference{Object: object, Path: path, To: now})
		}
	}
	slices.SortFunc(out, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// flatten stores each scalar value under its path.
func flatten(path string, value any, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			flatten(path+"."+key, below, into)
		}
	case []any:
		for i, below := range v {
			flatten(fmt.Sprintf("%s[%s]", path, itemName(below, i)), below, into)
		}
	case nil:
	default:
		data, err := json.Marshal(v)
		if err != nil {
			data = fmt.Append(nil, v)
		}
		into[path] = strings.Trim(string(data), `"`)
	}
}

// itemName identifies an item of a list by its name, if it has one, so that a reordered list does
// not differ.
func itemName(item any, index int) string {
	if m, ok := item.(map[string]any); ok {
		if name, ok := m["name"].(string); ok && name != "" {
			return name
		}
	}
	return fmt.Sprint(index)
}
