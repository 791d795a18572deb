package bundle

import (
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// errLoop is returned for schemas whose validation would not terminate.
var errLoop = errors.New("the schema refers to itself for the same value")

// samePlace lists the keywords whose schemas apply to the same value as the enclosing schema.
var samePlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependencies"}

// schemas are the objects of a document, whether they are schemas or not. They are identified by
// their address: pointers to them may take a thousand times the memory of the document.
type schemas struct {
	root  any
	all   []map[string]any
	bases []base
	state map[uintptr]visit
	// same has the schemas that apply to the same value as another.
	same map[uintptr][]map[string]any
	// left is how many references may still be looked up.
	left int
}

// base is a schema that references may begin at: one with an id, or the root.
type base struct {
	schema map[string]any
	named  bool
	// name is the fragment of its id.
	name string
}

type visit int

const (
	visiting visit = iota + 1
	visited
)

// parseSchemas parses a document. It rejects schemas such as {"$ref": "#"}, which the library
// follows until the stack overflows and the program ends.
//
// Because ids change the base of references, it assumes that a reference leads to every schema that
// it could mean. It may therefore reject a schema that terminates, but never accepts one that
// doesn't.
func parseSchemas(text []byte) (*schemas, error) {
	if err := safeyaml.CheckValues(text); err != nil {
		return nil, err
	}
	s := &schemas{state: map[uintptr]visit{}, same: map[uintptr][]map[string]any{}, left: maxEvaluations}
	if err := json.Unmarshal(text, &s.root); err != nil {
		return nil, err
	}
	s.collect(s.root)
	for _, schema := range s.all {
		if err := s.visit(schema); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *schemas) collect(value any) {
	switch v := value.(type) {
	case map[string]any:
		if named := id(v); named != "" || len(s.all) == 0 {
			s.bases = append(s.bases, base{v, named != "", fragment(named)})
		}
		s.all = append(s.all, v)
		for _, child := range v {
			s.collect(child)
		}
	case []any:
		for _, child := range v {
			s.collect(child)
		}
	}
}

func address(schema map[string]any) uintptr { return reflect.ValueOf(schema).Pointer() }

func id(schema map[string]any) string {
	for _, key := range []string{"$id", "id"} {
		if text, ok := schema[key].(string); ok {
			return text
		}
	}
	return ""
}

func (s *schemas) visit(schema map[string]any) error {
	at := address(schema)
	switch s.state[at] {
	case visited:
		return nil
	case visiting:
		return errLoop
	}
	s.state[at] = visiting
	s.same[at] = s.samePlace(schema)
	for _, next := range s.same[at] {
		if err := s.visit(next); err != nil {
			return err
		}
	}
	s.state[at] = visited
	if s.left < 0 {
		return errComplex
	}
	return nil
}

// samePlace returns the schemas that apply to the same value as a schema.
func (s *schemas) samePlace(schema map[string]any) []map[string]any {
	out := s.referred(schema)
	for _, keyword := range samePlace {
		if keyword == "dependencies" {
			out = appendAll(out, schema[keyword])
			continue
		}
		out = appendSchemas(out, schema[keyword])
	}
	return out
}

// appendSchemas appends a schema or a list of schemas.
func appendSchemas(to []map[string]any, value any) []map[string]any {
	switch v := value.(type) {
	case map[string]any:
		return append(to, v)
	case []any:
		for _, child := range v {
			if schema, ok := child.(map[string]any); ok {
				to = append(to, schema)
			}
		}
	}
	return to
}

// appendAll appends all schemas of a table.
func appendAll(to []map[string]any, value any) []map[string]any {
	table, _ := value.(map[string]any)
	for _, child := range table {
		if schema, ok := child.(map[string]any); ok {
			to = append(to, schema)
		}
	}
	return to
}

// referred returns all schemas that a reference could mean.
func (s *schemas) referred(schema map[string]any) []map[string]any {
	reference, ok := schema["$ref"].(string)
	if !ok {
		return nil
	}
	wanted := fragment(reference)
	var out []map[string]any
	for _, b := range s.bases {
		if found, ok := s.resolve(b.schema, wanted); ok {
			out = append(out, found)
		}
		if b.named && b.name == wanted {
			out = append(out, b.schema)
		}
		if s.left < 0 {
			return nil
		}
	}
	return out
}

// fragment returns the decoded part of a reference after the #.
func fragment(reference string) string {
	_, text, _ := strings.Cut(reference, "#")
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}

// resolve follows a JSON pointer from a base. The library ignores a fragment that is not a pointer.
func (s *schemas) resolve(base map[string]any, pointer string) (map[string]any, bool) {
	s.left--
	rest, isPointer := strings.CutPrefix(pointer, "/")
	if !isPointer {
		return base, true
	}
	var value any = base
	for key := range strings.SplitSeq(rest, "/") {
		s.left--
		switch v := value.(type) {
		case map[string]any:
			value = v[unescaper.Replace(key)]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	schema, ok := value.(map[string]any)
	return schema, ok
}

var unescaper = strings.NewReplacer("~1", "/", "~0", "~")
