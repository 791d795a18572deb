package bundle

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// errLoop is returned for schemas whose validation would not terminate.
var errLoop = errors.New("the schema refers to itself for the same value")

// samePlace lists the keywords whose schemas apply to the same value as the enclosing schema.
var samePlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependencies"}

// checkLoops rejects schemas such as {"$ref": "#"}, which the library follows until the stack
// overflows and the program ends.
//
// Because ids change the base of references, it assumes that a reference leads to every schema that
// it could mean. It may therefore reject a schema that terminates, but never accepts one that
// doesn't.
func checkLoops(text []byte) error {
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return err
	}
	s := &schemas{root: root, state: map[string]visit{}}
	s.collect(root, "")
	for _, at := range s.all {
		if err := s.visit(at); err != nil {
			return err
		}
	}
	return nil
}

type visit int

const (
	visiting visit = iota + 1
	visited
)

// place is an object in a document and the JSON pointer to it.
type place struct {
	pointer string
	value   map[string]any
}

type schemas struct {
	root any
	// all lists the objects of the document, whether they are schemas or not; bases those with an
	// id.
	all, bases []place
	state      map[string]visit
}

func (s *schemas) collect(value any, pointer string) {
	switch v := value.(type) {
	case map[string]any:
		at := place{pointer, v}
		s.all = append(s.all, at)
		if id(v) != "" || pointer == "" {
			s.bases = append(s.bases, at)
		}
		for key, child := range v {
			s.collect(child, pointer+"/"+escape(key))
		}
	case []any:
		for i, child := range v {
			s.collect(child, pointer+"/"+strconv.Itoa(i))
		}
	}
}

func id(schema map[string]any) string {
	for _, key := range []string{"$id", "id"} {
		if text, ok := schema[key].(string); ok {
			return text
		}
	}
	return ""
}

func (s *schemas) visit(at place) error {
	switch s.state[at.pointer] {
	case visited:
		return nil
	case visiting:
		return errLoop
	}
	s.state[at.pointer] = visiting
	for _, next := range append(s.inside(at), s.referred(at)...) {
		if err := s.visit(next); err != nil {
			return err
		}
	}
	s.state[at.pointer] = visited
	return nil
}

// inside returns the schemas in a schema that apply to the same value.
func (s *schemas) inside(at place) []place {
	var out []place
	for _, keyword := range samePlace {
		pointer := at.pointer + "/" + keyword
		switch v := at.value[keyword].(type) {
		case map[string]any:
			if keyword != "dependencies" {
				out = append(out, place{pointer, v})
				continue
			}
			for key, child := range v {
				out = appendSchema(out, pointer+"/"+escape(key), child)
			}
		case []any:
			for i, child := range v {
				out = appendSchema(out, pointer+"/"+strconv.Itoa(i), child)
			}
		}
	}
	return out
}

func appendSchema(to []place, pointer string, value any) []place {
	if schema, ok := value.(map[string]any); ok {
		to = append(to, place{pointer, schema})
	}
	return to
}

// referred returns all schemas that a reference could mean.
func (s *schemas) referred(at place) []place {
	reference, ok := at.value["$ref"].(string)
	if !ok {
		return nil
	}
	wanted := fragment(reference)
	var out []place
	for _, base := range s.bases {
		if found, ok := resolve(base, wanted); ok {
			out = append(out, found)
		}
		if named := id(base.value); named != "" && fragment(named) == wanted {
			out = append(out, base)
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

// resolve follows a JSON pointer from a base.
func resolve(base place, pointer string) (place, bool) {
	var value any = base.value
	at := base.pointer
	for _, key := range strings.Split(pointer, "/")[1:] {
		switch v := value.(type) {
		case map[string]any:
			key = unescape(key)
			value = v[key]
			at += "/" + escape(key)
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return place{}, false
			}
			value = v[i]
			at += "/" + strconv.Itoa(i)
		default:
			return place{}, false
		}
	}
	schema, ok := value.(map[string]any)
	return place{at, schema}, ok && (pointer == "" || strings.HasPrefix(pointer, "/"))
}

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

func escape(key string) string { return escaper.Replace(key) }

func unescape(key string) string { return unescaper.Replace(key) }
