package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// into decodes a document into an object. It skips and reports what does not fit, and ignores the
// status, which differs in files of other tools. The warnings list fields in another case, which
// those tools accept.
func (d document) into(o client.Object) (problems Violations, warnings []string) {
	f := &fitting{prefix: prefix(o, d)}
	f.rename(d.content, []string{"status"}, "")
	delete(d.content, "status")
	f.fit(d.content, reflect.TypeOf(o).Elem(), "")
	data, err := json.Marshal(d.content)
	if err == nil {
		err = json.Unmarshal(data, o)
	}
	if err != nil && len(f.problems) == 0 {
		f.problem("", "correct it", "can't be read")
	}
	return f.problems, f.warnings
}

// prefix returns the prefix of paths, which is empty for the Cluster.
func prefix(o client.Object, d document) string {
	if kindOf(o) == "Cluster" {
		return ""
	}
	return d.id() + ": "
}

// fitting compares a document with a Go type.
type fitting struct {
	prefix   string
	problems Violations
	warnings []string
}

func (f *fitting) problem(path, remedy, format string, args ...any) {
	f.problems = append(f.problems, Violation{Path: f.prefix + strings.TrimPrefix(path, "."), Problem: fmt.Sprintf(format, args...), Remedy: remedy})
}

// unmarshaler is the interface of types that decode themselves.
var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// fit reports whether a value can be decoded into a type. It removes the parts that can't.
func (f *fitting) fit(value any, t reflect.Type, path string) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case value == nil:
		return true
	case t == reflect.TypeFor[runtime.RawExtension]():
		_, ok := value.(map[string]any)
		return ok || f.mismatch(value, "an object", path)
	case reflect.PointerTo(t).Implements(unmarshaler):
		return f.reads(value, t, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		return f.object(value, t, path)
	case reflect.Map:
		return f.mapping(value, t, path)
	case reflect.Slice:
		return f.list(value, t, path)
	case reflect.String:
		_, ok := value.(string)
		return ok || f.mismatch(value, "a string", path)
	case reflect.Bool:
		_, ok := value.(bool)
		return ok || f.mismatch(value, "true or false", path)
	}
	return f.integer(value, t, path)
}

// reads checks a type that decodes itself.
func (f *fitting) reads(value any, t reflect.Type, path string) bool {
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, reflect.New(t).Interface())
	}
	if err != nil {
		f.problem(path, cmp.Or(forms[t.Name()], "correct it"), "is not a valid %s", cmp.Or(names[t.Name()], "value"))
	}
	return err == nil
}

// names and forms describe the types that decode themselves.
var (
	names = map[string]string{"Duration": "duration", "IntOrString": "number or percentage", "Time": "time", "FieldsV1": "set of fields"}
	forms = map[string]string{"Duration": "write it as 10m or 1h30m", "IntOrString": `write it as 2 or "40%"`, "Time": "leave it out", "FieldsV1": "leave it out"}
)

func (f *fitting) object(value any, t reflect.Type, path string) bool {
	content, ok := value.(map[string]any)
	if !ok {
		return f.mismatch(value, "an object", path)
	}
	known := fields(t)
	f.rename(content, sortedKeys(known), path)
	for _, key := range sortedKeys(content) {
		at := path + "." + printable(key)
		field, ok := known[key]
		if !ok {
			f.problem(at, suggestion(key, sortedKeys(known)), "unknown field")
		}
		if !ok || !f.fit(content[key], field, at) {
			delete(content, key)
		}
	}
	return true
}

// rename gives fields in another case their names, unless both are set.
func (f *fitting) rename(content map[string]any, known []string, path string) {
	for _, key := range sortedKeys(content) {
		i := slices.IndexFunc(known, func(name string) bool { return strings.EqualFold(name, key) })
		if i < 0 || known[i] == key {
			continue
		}
		if _, twice := content[known[i]]; twice {
			f.problem(path+"."+printable(key), "keep "+known[i]+" only", "is set twice, as %s too", known[i])
		} else {
			content[known[i]] = content[key]
			f.warnings = append(f.warnings, fmt.Sprintf("%s%s: read as %s", f.prefix, strings.TrimPrefix(path+"."+printable(key), "."), known[i]))
		}
		delete(content, key)
	}
}

func (f *fitting) mapping(value any, t reflect.Type, path string) bool {
	content, ok := value.(map[string]any)
	if !ok {
		return f.mismatch(value, "an object", path)
	}
	for _, key := range sortedKeys(content) {
		if !f.fit(content[key], t.Elem(), path+"["+printable(key)+"]") {
			delete(content, key)
		}
	}
	return true
}

// list keeps the number of elements, so that later paths have the right index.
func (f *fitting) list(value any, t reflect.Type, path string) bool {
	content, ok := value.([]any)
	if !ok {
		return f.mismatch(value, "a list", path)
	}
	for i := range content {
		if !f.fit(content[i], t.Elem(), path+"["+strconv.Itoa(i)+"]") {
			content[i] = nil
		}
	}
	return true
}

func (f *fitting) integer(value any, t reflect.Type, path string) bool {
	number, ok := value.(json.Number)
	if !ok {
		return f.mismatch(value, "an integer", path)
	}
	_, err := strconv.ParseInt(number.String(), 10, t.Bits())
	return err == nil || f.mismatch(value, "an integer within range", path)
}

// mismatch does not quote the value, because it may be a misplaced secret.
func (f *fitting) mismatch(value any, wanted, path string) bool {
	remedy := "write " + wanted
	if wanted == "a string" {
		remedy = "put it in quotes"
	}
	f.problem(path, remedy, "is %s but must be %s", describe(value), wanted)
	return false
}

func describe(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}

// fields returns the types of the fields of a struct by their JSON names.
func fields(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" && field.Anonymous:
			for inner, innerType := range fields(field.Type) {
				known[inner] = innerType
			}
		case name != "" && name != "-":
			known[name] = field.Type
		}
	}
	return known
}

func suggestion(key string, known []string) string {
	if near := nearest(key, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) > 12 || len(known) == 0 {
		return "remove it"
	}
	return "remove it, or use one of " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}
