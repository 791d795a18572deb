package document

import (
	"errors"
	"fmt"
)

// errSingle is returned for a file that should have one object and has several documents.
var errSingle = errors.New("it must have one document, which is an object")

// Edit returns a file whose only object was changed by a function, which gets a copy with numbers
// as json.Number. The object needs no name. In an empty file, it starts without fields.
func Edit(original []byte, change func(object map[string]any)) ([]byte, error) {
	f, err := parse(original, "")
	if err != nil {
		return nil, err
	}
	s, err := f.single()
	if err != nil {
		return nil, err
	}
	desired, err := toJSON(s.valueOrEmpty())
	if err != nil {
		return nil, err
	}
	change(desired)
	if desired, err = toJSON(desired); err != nil {
		return nil, err
	}
	if s.value == nil {
		err = f.add(object{value: desired})
	} else {
		err = f.edit(s, desired)
	}
	if err != nil {
		return nil, err
	}
	return f.bytes(), f.verifySingle(desired)
}

// single returns the document of a file that has one, or the last one of a file without content.
func (f *file) single() (*segment, error) {
	found := &f.segments[len(f.segments)-1]
	count := 0
	for i := range f.segments {
		s := &f.segments[i]
		switch {
		case s.value != nil:
			found = s
			count++
		case s.root != nil && s.root.ShortTag() != "!!null":
			return nil, errSingle
		}
	}
	if count > 1 {
		return nil, errSingle
	}
	return found, nil
}

func (s *segment) valueOrEmpty() map[string]any {
	if s.value == nil {
		return map[string]any{}
	}
	return s.value
}

// verifySingle parses a changed file again.
func (f *file) verifySingle(desired map[string]any) error {
	again, err := parse(f.bytes(), "")
	if err != nil {
		return fmt.Errorf("%w: %w", errVerify, err)
	}
	s, err := again.single()
	if err != nil || !equal(s.valueOrEmpty(), desired) {
		return errVerify
	}
	return nil
}
