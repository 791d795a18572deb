package userdata

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// defaultMode is the mode of files without permissions.
const defaultMode = 0o644

var errNotList = errors.New("not a list")

// commands reads a list of lines and of lists of words.
func commands(node *yaml.Node) ([]Command, error) {
	if node.Kind == yaml.ScalarNode {
		return []Command{{Line: node.Value}}, nil
	}
	if node.Kind != yaml.SequenceNode {
		return nil, errNotList
	}
	var all []Command
	for _, item := range node.Content {
		item = resolve(item)
		switch item.Kind {
		case yaml.ScalarNode:
			if item.Tag != "!!null" {
				all = append(all, Command{Line: item.Value})
			}
		case yaml.SequenceNode:
			words, err := scalars(item)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", item.Line, err)
			}
			if len(words) > 0 {
				all = append(all, Command{Words: words})
			}
		default:
			return nil, fmt.Errorf("line %d: a command must be a string or a list of strings; quote it if it contains a colon", item.Line)
		}
	}
	return all, nil
}

func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

// scalars reads a list of strings, numbers and booleans as they are written.
func scalars(node *yaml.Node) ([]string, error) {
	var words []string
	for _, item := range node.Content {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode {
			return nil, errors.New("a word of a command is not a string")
		}
		words = append(words, item.Value)
	}
	return words, nil
}

// mode reads an octal number, with or without quotes.
type mode fs.FileMode

func (m *mode) UnmarshalYAML(node *yaml.Node) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(node.Value, "0o"), 8, 32)
	if err != nil || n > 0o7777 {
		return fmt.Errorf("line %d: permissions %q are not an octal number", node.Line, node.Value)
	}
	*m = mode(n)
	return nil
}

// files reads write_files.
func files(node *yaml.Node) ([]File, error) {
	var entries []struct {
		Path        string
		Content     string
		Encoding    string
		Owner       string
		Permissions *mode
		Append      bool
		Defer       bool
	}
	if err := node.Decode(&entries); err != nil {
		return nil, err
	}
	var all []File
	for i, e := range entries {
		if !path.IsAbs(e.Path) {
			return nil, fmt.Errorf("entry %d: path %q is not absolute", i+1, e.Path)
		}
		content, err := decodeContent(e.Content, e.Encoding)
		if err != nil {
			return nil, fmt.Errorf("content of %q: %w", e.Path, err)
		}
		f := File{Path: path.Clean(e.Path), Content: content, Owner: e.Owner, Append: e.Append, Deferred: e.Defer, Mode: defaultMode}
		if e.Permissions != nil {
			f.Mode = fs.FileMode(*e.Permissions)
		}
		all = append(all, f)
	}
	return all, nil
}
