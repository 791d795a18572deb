package document

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// source is the text of a document, in lines that are counted from 1 as the parser does.
type source struct {
	text   []byte
	starts []int // offsets of the lines
}

func newSource(text []byte) *source {
	s := &source{text: text}
	offset := 0
	for line := range bytes.Lines(text) {
		s.starts = append(s.starts, offset)
		offset += len(line)
	}
	return s
}

// addressable reports whether the lines of the parser are those of the source. The parser knows
// more line breaks than \n.
func (s *source) addressable() bool {
	plain := bytes.ReplaceAll(s.text, []byte("\r\n"), []byte("\n"))
	return !bytes.ContainsAny(plain, "\r\u0085\u2028\u2029\ufeff") && utf8.Valid(plain)
}

// start returns the offset of a line, or the end of the text for the line after the last one.
func (s *source) start(line int) int {
	if line > len(s.starts) {
		return len(s.text)
	}
	return s.starts[line-1]
}

// line returns a line without its line break.
func (s *source) line(line int) string {
	return strings.TrimRight(string(s.text[s.start(line):s.start(line+1)]), "\r\n")
}

// end returns the offset of the line break of a line.
func (s *source) end(line int) int { return s.start(line) + len(s.line(line)) }

// indent returns how many spaces a line starts with.
func (s *source) indent(line int) int {
	text := s.line(line)
	return len(text) - len(strings.TrimLeft(text, " "))
}

func (s *source) blank(line int) bool { return strings.TrimSpace(s.line(line)) == "" }

func (s *source) comment(line int) bool {
	return strings.HasPrefix(strings.TrimLeft(s.line(line), " \t"), "#")
}

// offset returns where a node starts. Columns count characters.
func (s *source) offset(node *yaml.Node) (int, error) {
	if node.Line < 1 || node.Line > len(s.starts) {
		return 0, errInPlace
	}
	at := s.start(node.Line)
	for range node.Column - 1 {
		_, size := utf8.DecodeRune(s.text[at:])
		at += size
	}
	if at > s.end(node.Line) {
		return 0, errInPlace
	}
	return at, nil
}

// locate returns where a scalar on one line begins and ends. It fails for scalars with a tag or an
// anchor, and for those of several lines.
func (s *source) locate(node *yaml.Node) (from, to int, err error) {
	from, err = s.offset(node)
	if err != nil {
		return 0, 0, err
	}
	rest := s.text[from:s.end(node.Line)]
	switch node.Style {
	case yaml.DoubleQuotedStyle:
		to = quotedEnd(rest, '"')
	case yaml.SingleQuotedStyle:
		to = quotedEnd(rest, '\'')
	case 0:
		if node.Value != "" && bytes.HasPrefix(rest, []byte(node.Value)) {
			to = len(node.Value)
		}
	}
	if to == 0 {
		return 0, 0, errInPlace
	}
	return from, from + to, nil
}

// quotedEnd returns the length of the quoted scalar at the beginning of a text, or 0.
func quotedEnd(text []byte, quote byte) int {
	if len(text) == 0 || text[0] != quote {
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch {
		case quote == '"' && text[i] == '\\':
			i++
		case text[i] != quote:
		case quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return 0
}

// collectionEnd returns the offset after the flow collection that starts at an offset. It fails if
// there are comments in it.
func (s *source) collectionEnd(from int) (int, error) {
	depth := 0
	before := byte('[')
	for i := from; i < len(s.text); i++ {
		c := s.text[i]
		switch {
		case (c == '"' || c == '\'') && strings.IndexByte("[{,:", before) >= 0:
			length := quotedEnd(s.text[i:], c)
			if length == 0 {
				return 0, errInPlace
			}
			i += length - 1
		case c == '#' && i > 0 && bytes.IndexByte([]byte(" \t\r\n"), s.text[i-1]) >= 0:
			return 0, errInPlace
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		}
		if depth == 0 {
			return i + 1, nil
		}
		if strings.IndexByte(" \t\r\n", c) < 0 {
			before = c
		}
	}
	return 0, errInPlace
}
