package template

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// Merge puts YAML documents on top of each other, the last one uppermost: maps are merged, everything else is replaced. A null takes
// away what is below it, and stays, as a package tool takes it for the wish that its own default be gone as well. Empty documents count
// for nothing.
func Merge(docs ...[]byte) (map[string]any, error) {
	out := map[string]any{}
	for i, doc := range docs {
		var v any
		if err := yaml.Unmarshal(doc, &v); err != nil {
			// The parser quotes what it does not understand, and that may be a secret.
			return nil, fmt.Errorf("parsing document %d of %d: invalid YAML", i+1, len(docs))
		}
		switch v := v.(type) {
		case nil:
		case map[string]any:
			merge(out, v)
		default:
			return nil, fmt.Errorf("parsing document %d of %d: not a map", i+1, len(docs))
		}
	}
	return out, nil
}

func merge(below, above map[string]any) {
	for key, value := range above {
		if m, ok := value.(map[string]any); ok {
			if under, ok := below[key].(map[string]any); ok {
				merge(under, m)
				continue
			}
		}
		below[key] = value
	}
}

// Join renders values of several templates as one document. A single one is kept to the byte.
func Join(texts ...string) (string, error) {
	if len(texts) == 1 {
		return texts[0], nil
	}
	docs := make([][]byte, 0, len(texts))
	for _, text := range texts {
		docs = append(docs, []byte(text))
	}
	merged, err := Merge(docs...)
	if err != nil || len(merged) == 0 {
		return "", err
	}
	data, err := yaml.Marshal(merged)
	if err != nil {
		return "", fmt.Errorf("writing merged values: %w", err)
	}
	return string(data), nil
}
