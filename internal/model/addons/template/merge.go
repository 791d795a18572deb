package template

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// Merge merges YAML documents. Later documents take precedence: maps are merged, everything else is
// replaced. A null removes what is below it and is kept, because package tools take it as a request
// to remove their own default. Empty documents are ignored.
func Merge(docs ...[]byte) (map[string]any, error) {
	out := map[string]any{}
	for i, doc := range docs {
		var v any
		err := safeyaml.Unmarshal(doc, &v)
		if errors.Is(err, safeyaml.ErrLimits) {
			return nil, fmt.Errorf("parsing document %d of %d: %w", i+1, len(docs), err)
		}
		if err != nil {
			// The parser quotes its input, which may be secret.
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

// Join merges rendered values into one document. It returns a single one unchanged.
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
