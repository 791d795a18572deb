package lifecycle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Difference is one field that changes.
type Difference struct {
	Object string `json:"object"`
	Path   string `json:"path"`
	From   string `json:"from"`
	To     string `json:"to"`
}

// String is the difference on one line.
func (d Difference) String() string {
	return fmt.Sprintf("%s %s: %s → %s", d.Object, d.Path, cmp.Or(d.From, "none"), cmp.Or(d.To, "none"))
}

// differences compares two values of JSON, field by field, and names the outermost fields that differ.
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

// flatten puts each value that is neither map nor list under its path.
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

// itemName calls an item of a list by its name, if it has one, so that one that moved is not taken for another.
func itemName(item any, index int) string {
	if m, ok := item.(map[string]any); ok {
		if name, ok := m["name"].(string); ok && name != "" {
			return name
		}
	}
	return fmt.Sprint(index)
}
