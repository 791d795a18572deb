package bundle

import (
	"errors"
	"iter"
	"slices"
)

// maxEvaluations is how often schemas may be applied to values, and how many references may be
// looked up. Large configs need a hundredth of it.
const maxEvaluations = 100_000

// errComplex is returned for schemas whose validation would take too long.
var errComplex = errors.New("the schema refers to others too often")

// instance is a value of a config. Its address identifies it.
type instance struct {
	fields map[string]*instance
	items  []*instance
}

func newInstance(value any) *instance {
	out := &instance{}
	switch v := value.(type) {
	case map[string]any:
		out.fields = make(map[string]*instance, len(v))
		for key, child := range v {
			out.fields[key] = newInstance(child)
		}
	case []any:
		for _, child := range v {
			out.items = append(out.items, newInstance(child))
		}
	}
	return out
}

// evaluation is a schema that is applied to a value.
type evaluation struct {
	schema uintptr
	value  *instance
}

// evaluations counts how often the library applies schemas to values. It applies a schema again
// whenever another one refers to it, so that two references per level of schemas, or of the config,
// double the work with each level.
type evaluations struct {
	*schemas
	known map[evaluation]int
}

// checkConfig returns errComplex if the validation of a config takes too long.
func (s *schemas) checkConfig(config map[string]any) error {
	root, ok := s.root.(map[string]any)
	if !ok {
		return nil
	}
	s.left = maxEvaluations
	e := evaluations{schemas: s, known: map[evaluation]int{}}
	if e.count(root, newInstance(config)) > maxEvaluations || s.left < 0 {
		return errComplex
	}
	return nil
}

// count returns how many evaluations one requires, or more than the limit.
func (e *evaluations) count(schema map[string]any, value *instance) int {
	at := evaluation{address(schema), value}
	if n, ok := e.known[at]; ok {
		return n
	}
	e.left--
	if e.left < 0 {
		return maxEvaluations + 1
	}
	n := 1
	for _, next := range e.same[at.schema] {
		n = min(n+e.count(next, value), maxEvaluations+1)
	}
	for next, child := range inside(schema, value) {
		if n = min(n+e.count(next, child), maxEvaluations+1); n > maxEvaluations {
			break
		}
	}
	e.known[at] = n
	return n
}

// inside returns the schemas in a schema that apply to values in a value. It assumes that patterns
// match every name and that additional fields and items are never listed.
func inside(schema map[string]any, value *instance) iter.Seq2[map[string]any, *instance] {
	return func(yield func(map[string]any, *instance) bool) {
		properties, _ := schema["properties"].(map[string]any)
		every := always(schema, value)
		for name, field := range value.fields {
			for _, s := range appendSchemas(every, properties[name]) {
				if !yield(s, field) {
					return
				}
			}
		}
		for _, item := range value.items {
			for _, s := range every {
				if !yield(s, item) {
					return
				}
			}
		}
	}
}

// always returns the schemas that apply to every field or item of a value.
func always(schema map[string]any, value *instance) []map[string]any {
	var out []map[string]any
	if len(value.fields) > 0 {
		out = appendAll(out, schema["patternProperties"])
		out = appendSchemas(out, schema["additionalProperties"])
		out = appendSchemas(out, schema["propertyNames"])
	}
	if len(value.items) > 0 {
		out = appendSchemas(out, schema["items"])
		out = appendSchemas(out, schema["additionalItems"])
		out = appendSchemas(out, schema["contains"])
	}
	return slices.Clip(out)
}
