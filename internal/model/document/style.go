package document

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// style is how a file is formatted. New content follows it.
type style struct {
	lineBreak string
	step      int //  spaces per level
	lists     indentation
}

// indentation is how lists are indented below their key.
type indentation int

const (
	unknown indentation = iota
	compact             // as the key
	deeper              // as a mapping would be
)

// styleOf detects the style of a file. Its first document decides.
func styleOf(data []byte, segments []segment) style {
	s := style{lineBreak: "\n"}
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		s.lineBreak = "\r\n"
	}
	for _, one := range segments {
		s.detect(one.root)
	}
	return s.withDefaults()
}

// of returns the style of a document. What it doesn't show is as in the rest of the file.
func (s style) of(one *segment) style {
	own := style{lineBreak: s.lineBreak}
	own.detect(one.root)
	if own.step < 2 {
		own.step = s.step
	}
	if own.lists == unknown {
		own.lists = s.lists
	}
	return own
}

func (s style) withDefaults() style {
	if s.step < 2 || s.step > 8 {
		s.step = 2
	}
	if s.lists == unknown {
		s.lists = compact
	}
	return s
}

// detect sets what is not known yet.
func (s *style) detect(node *yaml.Node) {
	if node == nil || node.Style&yaml.FlowStyle != 0 {
		return
	}
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 1 {
			s.compare(node.Content[i-1], child)
		}
		s.detect(child)
	}
}

// compare detects how a value is indented below its key.
func (s *style) compare(key, value *yaml.Node) {
	if value.Line <= key.Line || value.Style&yaml.FlowStyle != 0 {
		return
	}
	switch {
	case value.Kind == yaml.MappingNode && s.step == 0:
		s.step = value.Column - key.Column
	case value.Kind == yaml.SequenceNode && s.lists == unknown:
		s.lists = deeper
		if value.Column == key.Column {
			s.lists = compact
		}
	}
}

// document renders an object as a document.
func (s style) document(value map[string]any) ([]byte, error) {
	text, err := s.render(value)
	return []byte(strings.ReplaceAll(text, "\n", s.lineBreak)), err
}

// render returns a value in block style, with \n as line break.
func (s style) render(value any) (string, error) {
	node, err := newNode(value)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(s.step)
	if s.lists == compact {
		encoder.CompactSeqIndent()
	}
	if err := encoder.Encode(node); err != nil {
		return "", err
	}
	err = encoder.Close()
	return out.String(), err
}

// newNode converts a value. Keys are sorted, but an item of a list starts with its name.
func newNode(value any) (*yaml.Node, error) {
	switch value := value.(type) {
	case map[string]any:
		return newMapping(value, slices.Sorted(maps.Keys(value)))
	case []any:
		return newSequence(value)
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: value.String()}, nil
	}
	node := &yaml.Node{}
	err := node.Encode(value)
	return node, err
}

func newMapping(value map[string]any, keys []string) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, key := range keys {
		name := &yaml.Node{}
		if err := name.Encode(key); err != nil {
			return nil, err
		}
		child, err := newNode(value[key])
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, name, child)
	}
	return node, nil
}

func newSequence(value []any) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.SequenceNode}
	for _, item := range value {
		child, err := newItem(item)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, child)
	}
	return node, nil
}

func newItem(value any) (*yaml.Node, error) {
	object, ok := value.(map[string]any)
	if !ok {
		return newNode(value)
	}
	keys := slices.Sorted(maps.Keys(object))
	if i := slices.Index(keys, "name"); i > 0 {
		keys = slices.Insert(slices.Delete(keys, i, i+1), 0, "name")
	}
	return newMapping(object, keys)
}

// flow returns a value in flow style on one line.
func flow(value any) (string, error) {
	node, err := newNode(value)
	if err != nil {
		return "", err
	}
	setFlow(node)
	data, err := yaml.Marshal(node)
	return strings.TrimSuffix(string(data), "\n"), err
}

// setFlow sets the style of a node and of everything in it. Text of several lines is quoted.
func setFlow(node *yaml.Node) {
	switch {
	case node.Kind != yaml.ScalarNode:
		node.Style = yaml.FlowStyle
	case strings.Contains(node.Value, "\n"):
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		setFlow(child)
	}
}
