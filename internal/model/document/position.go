package document

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Line returns the line of a field in a file, such as spec.groups[1].count of the Cluster "dev". If
// the field doesn't exist, it returns the line of the innermost one around it, and 0 if the file
// doesn't have the object. An empty name stands for the first object of the kind.
func Line(file []byte, kind, name, path string) int {
	f, err := parse(file, "")
	if err != nil {
		return 0
	}
	line := 1
	for _, s := range f.segments {
		line += strings.Count(string(s.separator), "\n")
		if s.value != nil && s.id.Kind == kind && (name == "" || s.id.Name == name) {
			return line - 1 + find(s.root, steps(path), s.root.Line)
		}
		line += strings.Count(string(s.body), "\n")
	}
	return 0
}

// steps splits a path into keys and indexes. A key in brackets may contain dots.
func steps(path string) []string {
	var all []string
	for path != "" {
		if inside, ok := strings.CutPrefix(path, "["); ok {
			key, rest, _ := strings.Cut(inside, "]")
			all, path = append(all, key), rest
			continue
		}
		path = strings.TrimPrefix(path, ".")
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		all, path = append(all, path[:end]), path[end:]
	}
	return all
}

// find returns the line of the innermost node on a path.
func find(node *yaml.Node, path []string, line int) int {
	if node.Kind == yaml.AliasNode || len(path) == 0 {
		return line
	}
	if node.Kind == yaml.SequenceNode {
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(node.Content) {
			return line
		}
		return find(node.Content[i], path[1:], node.Content[i].Line)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if strings.EqualFold(node.Content[i].Value, path[0]) {
			return find(node.Content[i+1], path[1:], node.Content[i].Line)
		}
	}
	return line
}
