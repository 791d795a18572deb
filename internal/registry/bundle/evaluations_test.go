package bundle_test

import (
	"fmt"
	"strings"
	"testing"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// doubled returns a schema whose definitions each apply the next one twice to the same value.
func doubled(levels int) string {
	var out strings.Builder
	out.WriteString(`{"$ref": "#/definitions/d0", "definitions": {`)
	for level := range levels {
		fmt.Fprintf(&out, `"d%d": {"allOf": [{"$ref": "#/definitions/d%d"}, {"$ref": "#/definitions/d%d"}]}, `, level, level+1, level+1)
	}
	fmt.Fprintf(&out, `"d%d": {"type": "object"}}}`, levels)
	return out.String()
}

// TestValidationEnds validates configs against schemas that would take years or all memory.
func TestValidationEnds(t *testing.T) {
	t.Parallel()
	twice := `{"allOf": [{"properties": {"x": {"$ref": "#"}}}, {"properties": {"x": {"$ref": "#"}}}]}`
	for name, tt := range map[string]struct{ schema, config string }{
		"references that double":     {doubled(40), ""},
		"a config that doubles":      {twice, strings.Repeat("{x: ", 40) + "1" + strings.Repeat("}", 40)},
		"a list that doubles":        {`{"properties": {"x": {"$ref": "#/definitions/l"}}, "definitions": {"l": {"allOf": [{"items": {"$ref": "#/definitions/l"}}, {"items": {"$ref": "#/definitions/l"}}]}}}`, "x: " + strings.Repeat("[", 40) + strings.Repeat("]", 40)},
		"many schemas, many fields":  {`{"patternProperties": {` + strings.TrimSuffix(repeated(`"%d": {},`, 5000), ",") + `}}`, repeated("k%d: 1\n", 5000)},
		"many ids, many references":  {`{"definitions": {` + strings.TrimSuffix(repeated(`"d%d": {"$id": "i%[1]d", "$ref": "#x"},`, 20_000), ",") + `}}`, ""},
		"a long name of many places": {`{"` + strings.Repeat("x", 1<<20) + `": [` + strings.Repeat("{},", 200_000) + `0]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := bundle.ValidateConfig(&packagesv1.SourceVersion{Schema: bundle.EncodeSchema([]byte(tt.schema))}, tt.config)
			if accepted := name == "a long name of many places"; accepted != (err == nil) {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := bundle.ValidateConfig(&packagesv1.SourceVersion{Schema: bundle.EncodeSchema([]byte(doubled(10)))}, ""); err != nil {
		t.Errorf("a thousand evaluations: %v", err)
	}
}

func repeated(format string, n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, format, i)
	}
	return out.String()
}
