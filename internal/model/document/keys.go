package document

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// keyError means that a key is set twice. Its line is that of the document.
type keyError struct{ line int }

func (e *keyError) Error() string { return fmt.Sprintf("line %d: the key is set twice", e.line) }

// booleans are keys that YAML 1.1 reads as true or false.
var booleans = []string{"y", "n", "yes", "no", "on", "off"}

// checkKeys rejects mappings that have a key twice. Parsers disagree on what they mean.
func checkKeys(node *yaml.Node) error {
	if node == nil {
		return nil
	}
	seen := map[string]bool{}
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 && child.Kind == yaml.ScalarNode {
			name := keyName(child)
			if seen[name] {
				return &keyError{child.Line}
			}
			seen[name] = true
		}
		if err := checkKeys(child); err != nil {
			return err
		}
	}
	return nil
}

// keyName returns a key as JSON has it: the key yes is "true", and 0x10 is "16".
func keyName(key *yaml.Node) string {
	if key.ShortTag() == "!!str" && (key.Style != 0 || !slices.Contains(booleans, strings.ToLower(key.Value))) {
		return key.Value
	}
	value, err := valueOf([]byte("? " + key.Value + "\n: 0\n"))
	if err != nil {
		return key.Value
	}
	object, _ := value.(map[string]any)
	for name := range object {
		return name
	}
	return key.Value
}
