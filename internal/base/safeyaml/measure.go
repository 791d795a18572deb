package safeyaml

import (
	"errors"

	yamlv2 "go.yaml.in/yaml/v2"
)

// node is a value that is not decoded yet. The parser that decodes the text afterwards makes it, so
// that both agree on what is an alias.
type node struct{ decode func(any) error }

// UnmarshalYAML implements yaml.Unmarshaler.
func (n *node) UnmarshalYAML(decode func(any) error) error {
	n.decode = decode
	return nil
}

// UnmarshalText implements encoding.TextUnmarshaler for "null" and "~", which the parser passes
// here even if they are quoted. They are too short to matter.
func (*node) UnmarshalText([]byte) error { return nil }

// key is a key of a mapping. It is never equal to another one, even if their texts are.
type key struct{ *node }

// UnmarshalYAML implements yaml.Unmarshaler.
func (k *key) UnmarshalYAML(decode func(any) error) error {
	k.node = &node{decode}
	return nil
}

// UnmarshalText implements encoding.TextUnmarshaler, as that of node.
func (k *key) UnmarshalText([]byte) error {
	k.node = &node{}
	return nil
}

// errKey means that a mapping has a key that JSON doesn't have.
var errKey = errors.New("a key is null")

// measure is what is left of the limits. Aliases are followed one value at a time, so that nothing
// is decoded that exceeds them.
type measure struct{ values, bytes, depth int }

// add subtracts a value and everything in it.
func (m *measure) add(n *node) error {
	m.values--
	if m.values < 0 || m.bytes < 0 {
		return ErrLimits
	}
	if n.decode == nil {
		return nil // null
	}
	var text string
	err := n.decode(&text)
	if mismatch := new(yamlv2.TypeError); errors.As(err, &mismatch) {
		return m.addContent(n)
	}
	if m.bytes -= len(text); err == nil && m.bytes < 0 {
		return ErrLimits
	}
	return err
}

// addContent subtracts what is in a mapping or a list.
func (m *measure) addContent(n *node) error {
	m.depth--
	if m.depth < 0 {
		return ErrLimits
	}
	defer func() { m.depth++ }()
	var table map[key]node
	err := n.decode(&table)
	if mismatch := new(yamlv2.TypeError); !errors.As(err, &mismatch) {
		return errors.Join(err, m.addTable(table))
	}
	var list []node
	err = n.decode(&list)
	return errors.Join(err, m.addAll(list))
}

func (m *measure) addAll(list []node) error {
	for i := range list {
		if err := m.add(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (m *measure) addTable(table map[key]node) error {
	for k, value := range table {
		if k.node == nil {
			return errKey
		}
		if err := m.addAll([]node{*k.node, value}); err != nil {
			return err
		}
	}
	return nil
}
