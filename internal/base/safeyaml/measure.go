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
	if n == nil || n.decode == nil {
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
	var table map[*node]*node // Each key is a pointer of its own, even if two are equal.
	err := n.decode(&table)
	if mismatch := new(yamlv2.TypeError); !errors.As(err, &mismatch) {
		return errors.Join(err, m.addTable(table))
	}
	var list []*node
	err = n.decode(&list)
	return errors.Join(err, m.addAll(list))
}

func (m *measure) addAll(list []*node) error {
	for _, n := range list {
		if err := m.add(n); err != nil {
			return err
		}
	}
	return nil
}

func (m *measure) addTable(table map[*node]*node) error {
	for key, value := range table {
		if key == nil {
			return errKey
		}
		if err := m.addAll([]*node{key, value}); err != nil {
			return err
		}
	}
	return nil
}
