package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is an undecoded object of a file.
type document struct {
	where   string // in the file, such as "document 2"
	content map[string]any
}

// text returns a top-level field, or the empty string if it is not a string.
func (d document) text(field string) string {
	text, _ := d.content[field].(string)
	return text
}

// id identifies the object by kind and name, or by its place in the file without a name.
func (d document) id() string {
	metadata, _ := d.content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if name == "" {
		return d.where
	}
	return printable(d.text("kind")) + "/" + printable(name)
}

// parse splits a file into documents. It stops at invalid YAML.
func parse(data []byte) ([]document, Violations) {
	var documents []document
	var problems Violations
	count := 0
	for _, part := range parts(data) {
		decoder := yaml.NewDecoder(bytes.NewReader(part))
		for {
			var node yaml.Node
			err := decoder.Decode(&node)
			if errors.Is(err, io.EOF) {
				break
			}
			count++
			where := fmt.Sprintf("document %d", count)
			if err != nil {
				return documents, append(problems, Violation{Path: where, Problem: parserText(err), Remedy: "correct the YAML"})
			}
			content, problem := objectOf(&node)
			switch {
			case problem != "":
				problems = append(problems, Violation{Path: where, Problem: problem, Remedy: "a document is an object with apiVersion, kind and metadata"})
			case content != nil:
				documents = append(documents, document{where: where, content: content})
			}
		}
	}
	return documents, problems
}

// parts separates concatenated JSON objects, which YAML does not support.
func parts(data []byte) [][]byte {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return [][]byte{data}
	}
	var all [][]byte
	for decoder := json.NewDecoder(bytes.NewReader(data)); ; {
		var one json.RawMessage
		switch err := decoder.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			return [][]byte{data}
		}
		all = append(all, one)
	}
}

// objectOf returns the content of a document as JSON would represent it, or nil if it is empty.
func objectOf(node *yaml.Node) (map[string]any, string) {
	settle(node)
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, parserText(err)
	}
	if value == nil {
		return nil, ""
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, "can't be converted to JSON: a key is not a string, or a number is not finite"
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var object map[string]any
	if decoder.Decode(&object) != nil {
		return nil, "is not an object"
	}
	return object, ""
}

// settle resolves ambiguities of YAML. Keys, dates and Kubernetes versions are strings: 1.30 is not
// 1.3. As in kubectl, the booleans of YAML 1.1 are booleans.
func settle(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode {
		settleScalar(node)
		return
	}
	for i, child := range node.Content {
		settle(child)
		if node.Kind != yaml.MappingNode || i%2 == 1 {
			continue
		}
		if child.Kind == yaml.ScalarNode && child.ShortTag() != "!!merge" {
			child.Tag = "!!str"
		}
		if strings.EqualFold(child.Value, "kubernetesVersion") {
			quote(node.Content[i+1])
		}
	}
}

func settleScalar(node *yaml.Node) {
	switch {
	case node.ShortTag() == "!!timestamp":
		node.Tag = "!!str"
	case node.Style == 0 && slices.Contains([]string{"yes", "y", "on"}, strings.ToLower(node.Value)):
		node.Tag, node.Value = "!!bool", "true"
	case node.Style == 0 && slices.Contains([]string{"no", "n", "off"}, strings.ToLower(node.Value)):
		node.Tag, node.Value = "!!bool", "false"
	}
}

// quote converts a number to a string.
func quote(node *yaml.Node) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if tag := node.ShortTag(); node.Kind == yaml.ScalarNode && (tag == "!!float" || tag == "!!int") {
		node.Tag = "!!str"
	}
}

// parserText returns the error of the parser on one line of bounded length. It may quote the file.
func parserText(err error) string {
	return "invalid YAML: " + printable(strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: "))
}
