package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// byteOrderMark may precede the first document.
var byteOrderMark = []byte("\ufeff")

// file is a sequence of documents. The concatenation of its segments is its content.
type file struct {
	namespace string
	style     style
	segments  []segment
}

// segment is a document with the separator in front of it.
type segment struct {
	separator []byte         // with its line break; empty at the beginning of a file
	body      []byte         // up to the next separator
	root      *yaml.Node     // nil if the body is empty
	value     map[string]any // nil if the body is not an object
	id        ID
}

func parse(data []byte, namespace string) (*file, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("the file has %d bytes; the maximum is %d", len(data), MaxSize)
	}
	if err := safeyaml.CheckValues(data); err != nil {
		return nil, err
	}
	segments, err := split(data)
	if err != nil {
		return nil, err
	}
	if len(segments) > MaxDocuments {
		return nil, fmt.Errorf("the file has %d documents; the maximum is %d", len(segments), MaxDocuments)
	}
	f := &file{namespace: namespace, segments: segments}
	line := 0
	for i := range f.segments {
		s := &f.segments[i]
		line += bytes.Count(s.separator, []byte("\n"))
		if err := s.decode(namespace); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, s.explain(err, line))
		}
		line += bytes.Count(s.body, []byte("\n"))
	}
	f.style = styleOf(data, f.segments)
	return f, nil
}

func (f *file) bytes() []byte {
	var out bytes.Buffer
	for _, s := range f.segments {
		out.Write(s.separator)
		out.Write(s.body)
	}
	return out.Bytes()
}

// Constructs that no tool of this field writes, and that would need a parser of the whole stream.
var (
	errMarker    = errors.New(`directives and the marker "..." are not supported: separate documents with "---"`)
	errSeparator = errors.New(`content on the line of a separator is not supported: start a new line after "---"`)
	errSeveral   = errors.New(`it has several documents without a separator: put "---" between them`)
)

// split separates a file at lines that start with "---". Such a line ends a document even within a
// quoted or block scalar.
func split(data []byte) ([]segment, error) {
	first := segment{}
	if bytes.HasPrefix(data, byteOrderMark) {
		first.separator, data = data[:len(byteOrderMark)], data[len(byteOrderMark):]
	}
	segments := []segment{first}
	for line := range bytes.Lines(data) {
		last := &segments[len(segments)-1]
		switch {
		case isMarker(line, "..."), bytes.HasPrefix(line, []byte("%YAML")), bytes.HasPrefix(line, []byte("%TAG")):
			return nil, errMarker
		case !isMarker(line, "---"):
			last.body = append(last.body, line...)
			continue
		}
		if rest := bytes.TrimSpace(line[3:]); len(rest) > 0 && rest[0] != '#' {
			return nil, errSeparator
		}
		segments = append(segments, segment{separator: bytes.Clone(line)})
	}
	return segments, nil
}

// isMarker reports whether a line starts with a marker of the stream.
func isMarker(line []byte, marker string) bool {
	rest, found := bytes.CutPrefix(line, []byte(marker))
	return found && (len(rest) == 0 || bytes.ContainsRune([]byte(" \t\r\n"), rune(rest[0])))
}

// decode parses the body twice: for its meaning, and for its positions.
func (s *segment) decode(namespace string) error {
	root, err := nodeOf(s.body)
	if err != nil {
		return err
	}
	if err := checkKeys(root); err != nil {
		return err
	}
	value, err := valueOf(s.body)
	if err != nil {
		return err
	}
	s.root, s.value, s.id = root, nil, ID{}
	if object, ok := value.(map[string]any); ok {
		s.value, s.id = object, idOf(object, namespace)
	}
	return nil
}

// explain returns the error of the parser with lines of the file instead of the document.
func (s *segment) explain(err error, linesBefore int) error {
	if _, syntax := nodeOf(append(bytes.Repeat([]byte("\n"), linesBefore), s.body...)); syntax != nil {
		return syntax
	}
	if twice := new(keyError); errors.As(err, &twice) {
		return &keyError{twice.line + linesBefore}
	}
	return err
}

// nodeOf returns the root of the only document of a text, or nil if there is none.
func nodeOf(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, next yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil // A document without content has no root.
	}
	if err != nil {
		return nil, err
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errSeveral, err)
	}
	return document.Content[0], nil
}

// remove empties a document. Comments at the beginning of the file that a blank line separates from
// the document describe the file, and stay.
func (s *segment) remove() {
	header := []byte{}
	if len(s.separator) == 0 || bytes.Equal(s.separator, byteOrderMark) {
		header = fileHeader(s.body)
	} else {
		s.separator = nil
	}
	*s = segment{separator: s.separator, body: header}
}

// fileHeader returns the comments in front of the first blank line.
func fileHeader(body []byte) []byte {
	end := 0
	for line := range bytes.Lines(body) {
		end += len(line)
		switch trimmed := bytes.TrimSpace(line); {
		case len(trimmed) == 0:
			return body[:end]
		case trimmed[0] != '#':
			return nil
		}
	}
	return nil
}

// add appends a document. The last segment is used if it has no content.
func (f *file) add(o object) error {
	body, err := f.style.document(o.value)
	if err != nil {
		return err
	}
	last := &f.segments[len(f.segments)-1]
	if last.endsWithinLine() {
		last.body = append(last.body, f.style.lineBreak...)
	}
	if last.root == nil && last.value == nil && f.unused(last) {
		last.body = append(last.body, body...)
		return last.decode(f.namespace)
	}
	next := segment{separator: []byte("---" + f.style.lineBreak), body: body}
	f.segments = append(f.segments, next)
	return f.segments[len(f.segments)-1].decode(f.namespace)
}

// endsWithinLine reports whether the last line of a segment has no line break.
func (s *segment) endsWithinLine() bool {
	text := slices.Concat(bytes.TrimPrefix(s.separator, byteOrderMark), s.body)
	return len(text) > 0 && !bytes.HasSuffix(text, []byte("\n"))
}

// unused reports whether the last segment starts a document: a separator precedes it, or it is the
// only one.
func (f *file) unused(last *segment) bool {
	return len(f.segments) == 1 || bytes.HasPrefix(last.separator, []byte("---"))
}
