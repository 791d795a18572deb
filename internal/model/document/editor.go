package document

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// errInPlace means that a change can't be made where the value is.
var errInPlace = errors.New("the construct can't be changed in place")

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

// editor collects replacements in a document.
type editor struct {
	*source
	style style
	edits []edit
}

// edit replaces a part of the text.
type edit struct {
	from, to int
	text     string
}

func (e *editor) replace(from, to int, text string) {
	e.edits = append(e.edits, edit{from, to, strings.ReplaceAll(text, "\n", e.style.lineBreak)})
}

// result applies the replacements, which must not overlap.
func (e *editor) result() ([]byte, error) {
	slices.SortStableFunc(e.edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	var out []byte
	at := 0
	for _, one := range e.edits {
		if one.from < at {
			return nil, errInPlace
		}
		out = append(append(out, e.text[at:one.from]...), one.text...)
		at = one.to
	}
	return append(out, e.text[at:]...), nil
}

// collection changes a mapping or a list.
func (e *editor) collection(node *yaml.Node, current, desired any, limit int) error {
	if node.Style&yaml.FlowStyle != 0 {
		return e.flow(node, current, desired)
	}
	switch want := desired.(type) {
	case map[string]any:
		if have, ok := current.(map[string]any); ok && node.Kind == yaml.MappingNode && len(want) > 0 {
			return e.mapping(node, have, want, limit)
		}
	case []any:
		if have, ok := current.([]any); ok && node.Kind == yaml.SequenceNode && len(want) > 0 {
			return e.sequence(node, have, want, limit)
		}
	}
	return errInPlace
}

// mapping removes, changes and adds entries of a mapping in block style. An entry that a merge key
// provides can be overridden, but not removed.
func (e *editor) mapping(node *yaml.Node, current, desired map[string]any, limit int) error {
	entries, err := e.elements(node, limit)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return errInPlace
	}
	byKey := map[string]element{}
	for _, entry := range entries {
		if entry.key.Kind != yaml.ScalarNode || keyName(entry.key) != entry.key.Value {
			return errInPlace
		}
		byKey[entry.key.Value] = entry
	}
	var added []string
	for _, key := range union(current, desired) {
		want, wanted := desired[key]
		entry, exists := byKey[key]
		switch {
		case equal(current[key], want):
		case wanted && exists:
			err = e.change(entry, current[key], want)
		case wanted:
			added = append(added, key)
		case exists:
			err = e.remove(entry)
		default:
			err = errInPlace
		}
		if err != nil {
			return err
		}
	}
	return e.append(entries[len(entries)-1], added, desired)
}

// union returns the keys of two maps, sorted.
func union(a, b map[string]any) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// append adds entries after the last one.
func (e *editor) append(last element, keys []string, values map[string]any) error {
	if len(keys) == 0 {
		return nil
	}
	added := map[string]any{}
	for _, key := range keys {
		added[key] = values[key]
	}
	text, err := e.style.render(added)
	if err != nil {
		return err
	}
	return e.insertAfter(last, indented(text, last.column-1))
}

// insertAfter adds lines after an element.
func (e *editor) insertAfter(last element, text string) error {
	line, err := e.extent(last)
	if err != nil {
		return err
	}
	at := e.start(line + 1)
	if at == e.end(line) { // The last line has no line break, and shall not get one.
		text = "\n" + strings.TrimSuffix(text, "\n")
	}
	e.replace(at, at, text)
	return nil
}

// remove deletes the lines of an element with the comments that belong to it.
func (e *editor) remove(one element) error {
	if !e.alone(one) {
		return errInPlace
	}
	last, err := e.extent(one)
	if err != nil {
		return err
	}
	e.replace(e.start(e.head(one)), e.start(last+1), "")
	return nil
}

// change changes the value of an element, or writes it again if the change can't be made within it.
func (e *editor) change(one element, current, desired any) error {
	before := len(e.edits)
	err := errInPlace
	switch {
	case one.value.Kind == yaml.ScalarNode && isScalar(desired):
		err = e.setScalar(one.value, desired, inBlock)
	case one.value.Kind != yaml.ScalarNode && !isScalar(desired):
		err = e.collection(one.value, current, desired, one.limit)
	}
	if !errors.Is(err, errInPlace) {
		return err
	}
	e.edits = e.edits[:before]
	return e.rewrite(one, desired)
}
