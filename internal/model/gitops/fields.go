package gitops

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/model/document"
)

// field identifies a field of an object.
type field struct{ object, path string }

// fields returns the values of the fields of the objects of a cluster, as JSON.
func (t *tree) fields(loc Location) map[field]string {
	all := map[field]string{}
	for _, name := range t.specFiles(loc) {
		objects, err := document.Objects(t.files[name])
		if err != nil {
			continue
		}
		for _, object := range flatten(objects) {
			id := document.IDOf(object, "")
			flattenFields(all, field{object: id.Kind + "/" + id.Name}, object)
		}
	}
	return all
}

// flattenFields adds the scalars of a value. Items of lists are identified by name or index.
func flattenFields(all map[field]string, at field, value any) {
	switch content := value.(type) {
	case map[string]any:
		for key, child := range content {
			path := key
			if at.path != "" {
				path = at.path + "." + key
			}
			flattenFields(all, field{at.object, path}, child)
		}
	case []any:
		for i, child := range content {
			id := nameOf(child)
			if id == "" || indexOfName(content, id) != i {
				id = strconv.Itoa(i)
			}
			flattenFields(all, field{at.object, at.path + "[" + id + "]"}, child)
		}
	}
	if isScalar(value) || isEmpty(value) {
		data, err := json.Marshal(value)
		if err != nil {
			return
		}
		all[at] = string(data)
	}
}

// isEmpty reports whether a value has no fields or items that stand for it.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// hiddenFields are fields whose values are not shown.
var hiddenFields = regexp.MustCompile(`(?i)(?:token|password|passphrase|privatekey|secretkey|apikey)$`)

// display returns a value of bounded length, without secrets.
func display(path, value string) string {
	if value != "" && (hiddenFields.MatchString(path) || matchRules(value) != "") {
		return "(hidden)"
	}
	return text.TruncateTo(value, maxValue)
}

// compareFields returns the fields that differ, sorted.
func compareFields(old, current map[field]string) []FieldChange {
	keys := maps.Clone(old)
	maps.Copy(keys, current)
	var all []FieldChange
	for key := range keys {
		if old[key] != current[key] {
			all = append(all, FieldChange{key.object, key.path, display(key.path, old[key]), display(key.path, current[key])})
		}
	}
	slices.SortFunc(all, func(a, b FieldChange) int {
		return cmp.Or(strings.Compare(a.Object, b.Object), strings.Compare(a.Path, b.Path))
	})
	return all
}
