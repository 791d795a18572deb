package helm

import (
	"bytes"
	"encoding/json"
	"strings"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
)

// isolateSchemas removes references to anything outside of a schema from the schemas of a chart and
// its dependencies. Helm would read files and send requests for them, with the privileges and from
// the network of the manager. What a reference would check is not checked.
func isolateSchemas(chart *chartv2.Chart) {
	if len(chart.Schema) > 0 {
		chart.Schema = isolateSchema(chart.Schema)
	}
	for _, d := range chart.Dependencies() {
		isolateSchemas(d)
	}
}

// isolateSchema returns an invalid schema as it is: it refers to nothing.
func isolateSchema(text []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var schema any
	if decoder.Decode(&schema) != nil || decoder.More() {
		return text
	}
	isolate(schema)
	out, err := json.Marshal(schema)
	if err != nil {
		return text
	}
	return out
}

func isolate(schema any) {
	switch schema := schema.(type) {
	case []any:
		for _, s := range schema {
			isolate(s)
		}
	case map[string]any:
		for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
			if to, ok := schema[key].(string); ok && !strings.HasPrefix(to, "#") {
				delete(schema, key)
			}
		}
		if of, ok := schema["$schema"].(string); ok && !isDraft(of) {
			delete(schema, "$schema")
		}
		for _, s := range schema {
			isolate(s)
		}
	}
}

// isDraft reports whether a schema of schemas is one that validators contain.
func isDraft(url string) bool {
	url = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(url, "#"), "https://"), "http://")
	switch url {
	case "json-schema.org/draft-04/schema", "json-schema.org/draft-06/schema", "json-schema.org/draft-07/schema",
		"json-schema.org/draft/2019-09/schema", "json-schema.org/draft/2020-12/schema":
		return true
	default:
		return false
	}
}
