package document

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// element is an entry of a mapping or an item of a list in block style.
//
//	  # head              head
//	  key: value          first
//	    more              last
//	    # inside          extent
//	# of the next one     limit
type element struct {
	key    *yaml.Node // nil for an item
	value  *yaml.Node
	column int // of the key or of the dash
	first  int // line of the key or of the dash
	limit  int // line of the next element, of this collection or of one around it
}

// elements returns the entries or items of a collection in block style.
func (s *source) elements(node *yaml.Node, limit int) ([]element, error) {
	var all []element
	switch {
	case node.Style&yaml.FlowStyle != 0:
		return nil, errInPlace
	case node.Kind == yaml.MappingNode:
		for i := 0; i < len(node.Content); i += 2 {
			key := node.Content[i]
			all = append(all, element{key: key, value: node.Content[i+1], column: key.Column, first: key.Line})
		}
	default:
		for _, item := range node.Content {
			line, err := s.dash(item.Line, node.Column)
			if err != nil {
				return nil, err
			}
			all = append(all, element{value: item, column: node.Column, first: line})
		}
	}
	for i := range all {
		all[i].limit = limit
		if i+1 < len(all) {
			all[i].limit = all[i+1].first
		}
	}
	return all, nil
}

// dash returns the line of the dash in front of an item, which may start on a later line.
func (s *source) dash(line, column int) (int, error) {
	for ; line > 0; line-- {
		text := s.line(line)
		if len(text) >= column && text[column-1] == '-' && strings.Trim(text[:column-1], " -") == "" {
			return line, nil
		}
	}
	return 0, errInPlace
}

// alone reports whether an element is the first one on its line.
func (s *source) alone(e element) bool {
	text := s.line(e.first)
	return len(text) >= e.column && strings.TrimLeft(text[:e.column-1], " ") == ""
}

// head returns the first line of the comment directly above an element.
func (s *source) head(e element) int {
	line := e.first
	for line > 1 && s.comment(line-1) && s.indent(line-1) == e.column-1 {
		line--
	}
	return line
}

// last returns the last line of the content of an element.
func (s *source) last(e element) (int, error) {
	line := e.limit - 1
	for line > e.first && (s.blank(line) || s.comment(line)) {
		line--
	}
	block := lastScalar(e.value)
	if block == nil || block.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		return line, nil
	}
	end, err := s.blockEnd(block, e)
	return max(line, end), err
}

// lastScalar returns the scalar at the end of a value, or nil.
func lastScalar(node *yaml.Node) *yaml.Node {
	for len(node.Content) > 0 {
		node = node.Content[len(node.Content)-1]
	}
	if node.Kind != yaml.ScalarNode {
		return nil
	}
	return node
}

// blockEnd returns the last line of a block scalar, which may look like a comment. It fails if the
// scalar keeps blank lines at its end, or states its indentation.
func (s *source) blockEnd(block *yaml.Node, e element) (int, error) {
	from, err := s.offset(block)
	if err != nil {
		return 0, err
	}
	header, _, _ := strings.Cut(string(s.text[from:s.end(block.Line)]), "#")
	if strings.ContainsAny(header, "+123456789") {
		return 0, errInPlace
	}
	last, indent := block.Line, 0
	for line := block.Line + 1; line < e.limit; line++ {
		switch {
		case s.blank(line):
			continue
		case indent == 0:
			indent = max(s.indent(line), 1)
		}
		if s.indent(line) < indent {
			break
		}
		last = line
	}
	return last, nil
}

// extent returns the last line of an element with the comments below its content that are indented
// deeper than the element.
func (s *source) extent(e element) (int, error) {
	last, err := s.last(e)
	if err != nil {
		return 0, err
	}
	for line := last + 1; line < e.limit; line++ {
		switch {
		case s.blank(line):
		case s.comment(line) && s.indent(line) >= e.column:
			last = line
		default:
			return last, nil
		}
	}
	return last, nil
}
