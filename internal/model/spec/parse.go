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

// document is an object of a file before it is known what it is.
type document struct {
	where   string // in the file, such as "document 2"
	content map[string]any
}

// text returns a field at the top, empty if it is not text.
func (d document) text(field string) string {
	text, _ := d.content[field].(string)
	return text
}

// id names the object, as far as it has a name.
func (d document) id() string {
	metadata, _ := d.content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if name == "" {
		return d.where
	}
	return printable(d.text("kind")) + "/" + printable(name)
}

// parse splits a file into documents. After broken YAML nothing can be said of what follows.
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

// parts separates objects of JSON that follow each other without anything between them, which YAML does not know.
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

// objectOf returns what a document holds as JSON would have it, nil if it is empty.
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
		return nil, "can't be written as JSON: it has a key that is not text, or a number that is none"
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var object map[string]any
	if decoder.Decode(&object) != nil {
		return nil, "is not an object"
	}
	return object, ""
}

// settle decides what YAML leaves to its readers. Keys, dates and versions of Kubernetes are text: 1.30 is not 1.3. Words that were
// booleans in older YAML still are for kubectl.
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
		if child.Value == "kubernetesVersion" {
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

// quote makes text of a number.
func quote(node *yaml.Node) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if tag := node.ShortTag(); node.Kind == yaml.ScalarNode && (tag == "!!float" || tag == "!!int") {
		node.Tag = "!!str"
	}
}

// parserText is what the parser says, on one line of bounded length. It may cite what it stumbled on.
func parserText(err error) string {
	return "is not YAML: " + printable(strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: "))
}
