package gitops

import (
	"maps"
	"reflect"
)

// merge returns a value of a file with the changes between two complete values: what the file means
// with its defaults, and what it shall mean. A default that doesn't change is not added, and a
// field that the type doesn't have stays. If the file has another type, such as a number for a
// string, the value is written.
func merge(file, have, want any) any {
	if reflect.DeepEqual(have, want) && reflect.TypeOf(file) == reflect.TypeOf(have) && isScalar(have) {
		return file
	}
	switch want := want.(type) {
	case map[string]any:
		inFile, ok := file.(map[string]any)
		before, also := have.(map[string]any)
		if ok && also {
			return mergeFields(inFile, before, want)
		}
	case []any:
		inFile, ok := file.([]any)
		before, also := have.([]any)
		if ok && also && len(inFile) == len(before) {
			return mergeItems(inFile, before, want)
		}
	}
	return want
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func mergeFields(file, have, want map[string]any) map[string]any {
	out := maps.Clone(file)
	for key := range have {
		if _, wanted := want[key]; !wanted {
			delete(out, key)
		}
	}
	for key, value := range want {
		existing, inFile := file[key]
		before, known := have[key]
		switch {
		case inFile:
			out[key] = merge(existing, before, value)
		case !known || !reflect.DeepEqual(before, value):
			out[key] = value
		}
	}
	return out
}

// mergeItems matches items by name, or else by index.
func mergeItems(file, have, want []any) []any {
	out := make([]any, len(want))
	for i, item := range want {
		out[i] = item
		at := i
		if name := nameOf(item); name != "" {
			at = indexOfName(have, name)
		}
		if at >= 0 && at < len(have) {
			out[i] = merge(file[at], have[at], item)
		}
	}
	return out
}

func nameOf(item any) string {
	object, _ := item.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

func indexOfName(list []any, name string) int {
	for i, item := range list {
		if nameOf(item) == name {
			return i
		}
	}
	return -1
}
