package document

import "slices"

// edit changes a document: in place if possible, or by rendering it again below the comments that
// precede it.
func (f *file) edit(s *segment, object map[string]any) error {
	desired := f.adapt(object, s.value)
	if equal(s.value, desired) {
		return nil
	}
	if body, err := f.editInPlace(s, desired); err == nil {
		changed := segment{separator: s.separator, body: body}
		if changed.decode(f.namespace) == nil && equal(changed.value, desired) {
			*s = changed
			return nil
		}
	}
	body, err := f.rerender(s, desired)
	if err != nil {
		return err
	}
	s.body = body
	return s.decode(f.namespace)
}

// rerender replaces everything but the comments in front of a document.
func (f *file) rerender(s *segment, desired map[string]any) ([]byte, error) {
	rendered, err := f.style.document(desired)
	if err != nil {
		return nil, err
	}
	src := newSource(s.body)
	line := 1
	for line <= len(src.starts) && (src.blank(line) || src.comment(line)) {
		line++
	}
	return append(slices.Clone(s.body[:src.start(line)]), rendered...), nil
}

func (f *file) editInPlace(s *segment, desired map[string]any) ([]byte, error) {
	e := &editor{source: newSource(s.body), style: f.style.of(s)}
	if !e.addressable() {
		return nil, errInPlace
	}
	if err := e.collection(s.root, s.value, desired, len(e.starts)+1); err != nil {
		return nil, err
	}
	return e.result()
}
