package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Where a scalar is written, as a text around it.
const (
	inBlock = "k: %s\n"
	inFlow  = "{k: %s}\n"
)

// setScalar replaces a scalar on one line, with the same quotes if possible.
func (e *editor) setScalar(node *yaml.Node, desired any, context string) error {
	from, to, err := e.locate(node)
	if err != nil {
		return err
	}
	text, err := scalarText(desired, node.Style, context)
	if err != nil {
		return err
	}
	e.replace(from, to, text)
	return nil
}

// scalarText returns the first spelling of a value that every parser reads as that value.
func scalarText(value any, quotes yaml.Style, context string) (string, error) {
	for _, text := range spellings(value, quotes) {
		if !strings.ContainsAny(text, "\r\n") && readsAs(fmt.Sprintf(context, text), value) {
			return text, nil
		}
	}
	return "", errInPlace
}

// spellings returns how a value can be written, the preferred way first. Text of several lines
// becomes a block scalar elsewhere, unless it was quoted before.
func spellings(value any, quotes yaml.Style) []string {
	encoded, err := style{step: 2}.render(value)
	encoded = strings.TrimSuffix(encoded, "\n")
	text, ok := value.(string)
	if !ok && err == nil {
		return []string{encoded}
	}
	single, double := "'"+strings.ReplaceAll(text, "'", "''")+"'", doubleQuoted(text)
	switch {
	case quotes == yaml.DoubleQuotedStyle:
		return []string{double}
	case strings.Contains(text, "\n"):
		return nil
	case quotes == yaml.SingleQuotedStyle:
		return []string{single, double}
	}
	return []string{encoded, double}
}

// doubleQuoted returns a string as JSON, which YAML reads alike.
func doubleQuoted(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return ""
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// readsAs reports whether parsers of YAML 1.1 and 1.2 read a value of the key k.
func readsAs(text string, want any) bool {
	old, err := valueOf([]byte(text))
	if err != nil || !equal(old, map[string]any{"k": want}) {
		return false
	}
	var decoded map[string]any
	if err := yaml.Unmarshal([]byte(text), &decoded); err != nil {
		return false
	}
	current, err := toJSON(decoded)
	return err == nil && equal(current, map[string]any{"k": want})
}

// flow changes a collection in flow style: scalars where they are, anything else by writing the
// collection again on one line.
func (e *editor) flow(node *yaml.Node, current, desired any) error {
	before := len(e.edits)
	err := e.flowScalars(node, current, desired)
	if !errors.Is(err, errInPlace) {
		return err
	}
	e.edits = e.edits[:before]
	from, err := e.offset(node)
	if err != nil {
		return err
	}
	to, err := e.collectionEnd(from)
	if err != nil {
		return err
	}
	text, err := flow(desired)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return errInPlace
	}
	e.replace(from, to, text)
	return nil
}

// flowScalars changes the scalars of a collection in flow style that keeps its keys and length.
func (e *editor) flowScalars(node *yaml.Node, current, desired any) error {
	have, want, nodes, err := aligned(node, current, desired)
	if err != nil {
		return err
	}
	for i, child := range nodes {
		switch {
		case equal(have[i], want[i]):
		case child.Kind == yaml.ScalarNode && isScalar(want[i]):
			err = e.setScalar(child, want[i], inFlow)
		case child.Kind != yaml.ScalarNode && child.Style&yaml.FlowStyle != 0:
			err = e.flow(child, have[i], want[i])
		default:
			err = errInPlace
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// aligned returns the values of two collections with the same keys or length, and their nodes.
func aligned(node *yaml.Node, current, desired any) (have, want []any, nodes []*yaml.Node, err error) {
	switch desired := desired.(type) {
	case []any:
		have, _ = current.([]any)
		if node.Kind != yaml.SequenceNode || len(have) != len(desired) || len(have) != len(node.Content) {
			return nil, nil, nil, errInPlace
		}
		return have, desired, node.Content, nil
	case map[string]any:
		return alignedFields(node, current, desired)
	}
	return nil, nil, nil, errInPlace
}

func alignedFields(node *yaml.Node, current any, desired map[string]any) (have, want []any, nodes []*yaml.Node, err error) {
	fields, ok := current.(map[string]any)
	if !ok || node.Kind != yaml.MappingNode || !slices.Equal(union(fields, nil), union(desired, nil)) {
		return nil, nil, nil, errInPlace
	}
	for i := 0; i < len(node.Content); i += 2 {
		key := node.Content[i].Value
		have, want, nodes = append(have, fields[key]), append(want, desired[key]), append(nodes, node.Content[i+1])
	}
	return have, want, nodes, nil
}
