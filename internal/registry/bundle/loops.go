package bundle

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// errLoop is for schemas that would never come to an end.
var errLoop = errors.New("it refers to itself without looking any deeper into the config")

// samePlace are keywords whose schemas are about the very value that the schema around them is about.
var samePlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependencies"}

// checkLoops refuses schemas such as {"$ref": "#"}: the library follows them until the stack ends, and with it the whole program.
//
// It takes a reference for one to every place that it might mean, since ids can change what it is relative to. A schema may so be refused
// that would have come to an end; one that would not is never let through.
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
	underWay visit = iota + 1
	visited
)

// place is a value in a document, with the way to it.
type place struct {
	pointer string
	value   map[string]any
}

type schemas struct {
	root any
	// all are the objects of the document, whether they are schemas or not; bases are those that have an id.
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
	case underWay:
		return errLoop
	}
	s.state[at.pointer] = underWay
	for _, next := range append(s.inside(at), s.referred(at)...) {
		if err := s.visit(next); err != nil {
			return err
		}
	}
	s.state[at.pointer] = visited
	return nil
}

// inside are the schemas below one that are about the same value.
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

// referred are all schemas that a reference could mean.
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

// fragment is what a reference has after the #, which may be written as in a URL.
func fragment(reference string) string {
	_, text, _ := strings.Cut(reference, "#")
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}

// resolve follows a JSON pointer.
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
