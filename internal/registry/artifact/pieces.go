package artifact

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// parsePieces parses an index in the format of Helm package by package, because the tree of a whole
// index takes many times the memory of its text. It returns nil for other formats.
func parsePieces(text []byte) index {
	pieces := cut(text)
	if len(pieces) == 0 {
		return nil
	}
	read := make(index, len(pieces))
	for _, piece := range pieces {
		var entries map[string][]*indexEntry
		if yaml.Unmarshal(piece, &entries) != nil {
			return nil
		}
		read.add(entries)
	}
	return read
}

// cut returns the text of each key of the entries. A piece starts at a line with the indentation of
// the first one: the content of a key is indented further, unless it is a list. In YAML with
// another layout, parsing a piece fails.
func cut(text []byte) [][]byte {
	var pieces [][]byte
	inside, start, indent, end := false, -1, 0, 0
	for line := range bytes.Lines(text) {
		content := bytes.TrimSpace(line)
		depth := len(line) - len(bytes.TrimLeft(line, " "))
		switch {
		case len(content) == 0 || content[0] == '#':
		case !inside:
			inside = depth == 0 && string(content) == "entries:"
		case depth == 0:
			return appendPiece(pieces, text, start, end)
		case start < 0:
			start, indent = end, depth
		case depth == indent && content[0] != '-':
			pieces = appendPiece(pieces, text, start, end)
			start = end
		}
		end += len(line)
	}
	return appendPiece(pieces, text, start, end)
}

func appendPiece(pieces [][]byte, text []byte, start, end int) [][]byte {
	if start < 0 {
		return pieces
	}
	return append(pieces, text[start:end])
}
