package bundle

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/xeipuuv/gojsonschema"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// maxSchema bounds what a schema unpacks to.
const maxSchema = 4 << 20

// Schema unpacks the JSON schema of a version. It is empty if there is none.
func Schema(v *packagesv1.SourceVersion) ([]byte, error) {
	if v.Schema == "" {
		return nil, nil
	}
	packed, err := base64.StdEncoding.DecodeString(v.Schema)
	if err != nil {
		return nil, fmt.Errorf("error decoding configurations %w", err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("error when uncompressing configurations %w", err)
	}
	schema, err := io.ReadAll(io.LimitReader(unpacked, maxSchema+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("error reading configurations %w", err)
	case len(schema) > maxSchema:
		return nil, fmt.Errorf("error reading configurations: the schema has more than %d MiB", maxSchema>>20)
	}
	return schema, nil
}

// EncodeSchema packs a JSON schema. The same schema gives the same text.
func EncodeSchema(schema []byte) string {
	if len(bytes.TrimSpace(schema)) == 0 {
		return ""
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write(schema) // A buffer takes everything.
	_ = writer.Close()
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// compile makes a validator of the schema of a version, nil if anything is accepted.
func compile(v *packagesv1.SourceVersion) (*gojsonschema.Schema, error) {
	text, err := Schema(v)
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return nil, err
	}
	if err := checkLoops(text); err != nil {
		return nil, fmt.Errorf("error loading the schema: %w", err)
	}
	schema, err := gojsonschema.NewSchema(alone{gojsonschema.NewBytesLoader(text)})
	if err != nil {
		return nil, fmt.Errorf("error loading the schema: %w", err)
	}
	return schema, nil
}

// alone keeps a schema from naming others. The library would read files and ask servers for them.
type alone struct{ gojsonschema.JSONLoader }

// LoaderFactory implements gojsonschema.JSONLoader.
func (alone) LoaderFactory() gojsonschema.JSONLoaderFactory { return elsewhere{} }

type elsewhere struct{}

// New implements gojsonschema.JSONLoaderFactory.
func (elsewhere) New(source string) gojsonschema.JSONLoader {
	return refused{gojsonschema.NewStringLoader(""), source}
}

type refused struct {
	gojsonschema.JSONLoader

	source string
}

// LoadJSON implements gojsonschema.JSONLoader.
func (r refused) LoadJSON() (any, error) {
	return nil, fmt.Errorf("it refers to %q, and a schema must not refer to anything outside itself", r.source)
}

// validate tells what is wrong with a config, which is JSON.
func validate(schema *gojsonschema.Schema, config map[string]any) error {
	text, err := json.Marshal(config)
	if err != nil {
		return errors.New("error validating configurations: config can't be written as JSON")
	}
	result, err := schema.Validate(gojsonschema.NewBytesLoader(text))
	if err != nil {
		return fmt.Errorf("error validating configurations: %w", err)
	}
	if result.Valid() {
		return nil
	}
	var problems strings.Builder
	for _, problem := range result.Errors() {
		fmt.Fprintf(&problems, "- %s\n", problem)
	}
	return fmt.Errorf("error validating configurations %s", problems.String())
}
