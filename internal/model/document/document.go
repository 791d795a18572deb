// Package document changes the objects of a YAML file and keeps the rest of the file byte for byte:
// comments, order, quotes, indentation, blank lines, separators and line breaks.
//
// A change is made where the value is. If a construct doesn't allow that, the smallest value, list
// item or document that contains it is written again. Every changed document is parsed again and
// compared with the desired object, so that a file never gets another meaning. Values mean what
// they mean to kubectl and Flux, which read YAML 1.1.
//
// The package never reads or writes files, and it knows no kinds. Start with Apply; change.go
// decides how a document is changed.
package document

import (
	"errors"
	"fmt"
	"slices"
)

// Limits of a file. The size equals the maximum of a spec.
const (
	MaxSize      = 1 << 20
	MaxDocuments = 5_000
)

// Options say how the documents of a file correspond to objects.
type Options struct {
	// Namespace is the namespace of documents and objects that don't name one.
	Namespace string
	// Remove reports whether a document is removed if its object is not desired. If it is nil, all
	// documents stay.
	Remove func(ID) bool
}

// Apply returns a file in which the documents of the desired objects have their content. Objects
// without a document are appended in their order. Documents of other objects stay as they are,
// unless they are to be removed. If nothing differs, the result equals the original.
//
// A field that is null equals a missing one.
func Apply(original []byte, desired []map[string]any, o Options) ([]byte, error) {
	wanted, err := objectsOf(desired, o.Namespace)
	if err != nil {
		return nil, err
	}
	f, err := parse(original, o.Namespace)
	if err != nil {
		return nil, err
	}
	if err := f.checkLists(wanted); err != nil {
		return nil, err
	}
	if err := f.update(wanted, o.Remove); err != nil {
		return nil, err
	}
	out := f.bytes()
	if err := verify(out, wanted, o); err != nil {
		return nil, err
	}
	return out, nil
}

// Objects returns the objects of a file as kubectl reads them, in the order of the file. Documents
// that are empty are left out, and so are those that are not objects.
func Objects(file []byte) ([]map[string]any, error) {
	f, err := parse(file, "")
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	for _, s := range f.segments {
		if s.value != nil {
			all = append(all, s.value)
		}
	}
	return all, nil
}

// object is a desired object.
type object struct {
	id    ID
	value map[string]any
}

// objectsOf converts the desired objects to JSON values and identifies them.
func objectsOf(desired []map[string]any, namespace string) ([]object, error) {
	all := make([]object, 0, len(desired))
	for i, one := range desired {
		value, err := toJSON(one)
		if err != nil {
			return nil, fmt.Errorf("converting desired object %d: %w", i+1, err)
		}
		o := object{idOf(value, namespace), value}
		if o.id.Kind == "" || o.id.Name == "" {
			return nil, fmt.Errorf("desired object %d has no kind or no name", i+1)
		}
		if slices.ContainsFunc(all, func(other object) bool { return other.id == o.id }) {
			return nil, fmt.Errorf("%s is desired twice", o.id)
		}
		all = append(all, o)
	}
	return all, nil
}

// update changes, removes and appends documents.
func (f *file) update(wanted []object, remove func(ID) bool) error {
	found := map[ID]bool{}
	for i := range f.segments {
		s := &f.segments[i]
		want := slices.IndexFunc(wanted, func(o object) bool { return s.value != nil && o.id == s.id })
		switch {
		case want >= 0 && found[s.id]:
			return fmt.Errorf("the file has %s twice", s.id)
		case want >= 0:
			found[s.id] = true
			if err := f.edit(s, wanted[want].value); err != nil {
				return fmt.Errorf("changing %s: %w", s.id, err)
			}
		case s.value != nil && remove != nil && remove(s.id):
			s.remove()
		}
	}
	for _, o := range wanted {
		if found[o.id] {
			continue
		}
		if err := f.add(o); err != nil {
			return fmt.Errorf("adding %s: %w", o.id, err)
		}
	}
	return nil
}

// errVerify means that a result doesn't have the desired meaning. No input should cause it.
var errVerify = errors.New("the changed file would not have the desired content")

// verify compares the documents of a result with the desired objects.
func verify(out []byte, wanted []object, o Options) error {
	f, err := parse(out, o.Namespace)
	if err != nil {
		return fmt.Errorf("%w: %w", errVerify, err)
	}
	left := slices.Clone(wanted)
	for _, s := range f.segments {
		i := slices.IndexFunc(left, func(o object) bool { return s.value != nil && o.id == s.id })
		switch {
		case i >= 0 && !equal(s.value, f.adapt(left[i].value, s.value)):
			return fmt.Errorf("%w: %s differs", errVerify, s.id)
		case i >= 0:
			left = slices.Delete(left, i, i+1)
		case s.value != nil && o.Remove != nil && o.Remove(s.id):
			return fmt.Errorf("%w: %s is left", errVerify, s.id)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%w: %s is missing", errVerify, left[0].id)
	}
	return nil
}
