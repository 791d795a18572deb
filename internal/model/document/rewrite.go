package document

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// rewrite replaces the value of an element, and keeps its key and the comment on its first line.
func (e *editor) rewrite(one element, desired any) error {
	from, err := e.valueStart(one)
	if err != nil {
		return err
	}
	last, err := e.last(one)
	if err != nil {
		return err
	}
	text, err := e.renderValue(one, desired)
	if err != nil {
		return err
	}
	first, rest, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\n")
	text = first + e.lineComment(one, from)
	if rest != "" {
		text += "\n" + indented(rest, one.column-1)
	}
	e.replace(from, e.end(last), text)
	return nil
}

// renderValue renders what follows the colon or the dash of an element.
func (e *editor) renderValue(one element, desired any) (string, error) {
	if one.key == nil {
		text, err := e.style.render([]any{desired})
		return strings.TrimPrefix(text, "-"), err
	}
	text, err := e.style.render(map[string]any{"key": desired})
	return strings.TrimPrefix(text, "key:"), err
}

// valueStart returns the offset after the colon or the dash of an element.
func (e *editor) valueStart(one element) (int, error) {
	if one.key == nil {
		return e.start(one.first) + one.column, nil
	}
	_, to, err := e.locate(one.key)
	if err != nil {
		return 0, err
	}
	rest := e.text[to:e.end(one.first)]
	colon := bytes.IndexByte(rest, ':')
	if colon < 0 || len(bytes.TrimSpace(rest[:colon])) > 0 {
		return 0, errInPlace
	}
	return to + colon + 1, nil
}

// lineComment returns the comment after the key or the scalar of an element, with the space in
// front of it.
func (e *editor) lineComment(one element, from int) string {
	end := e.end(one.first)
	if one.value.Kind == yaml.ScalarNode && one.value.Line == one.first {
		if _, to, err := e.locate(one.value); err == nil {
			from = to
		}
	}
	rest := string(e.text[from:end])
	if strings.HasPrefix(strings.TrimLeft(rest, " \t"), "#") {
		return rest
	}
	return ""
}

// indented indents the lines of a text that are not empty.
func indented(text string, spaces int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			out.WriteString(strings.Repeat(" ", spaces))
		}
		out.WriteString(line)
	}
	return out.String()
}
