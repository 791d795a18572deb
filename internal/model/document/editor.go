package document

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// errInPlace means that a change can't be made where the value is.
var errInPlace = errors.New("the construct can't be changed in place")

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
