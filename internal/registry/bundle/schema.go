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

// maxSchema is the largest size of a decompressed schema.
const maxSchema = 4 << 20

// Schema decodes the JSON schema of a version. It is empty if there is none.
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
		return nil, fmt.Errorf("error reading configurations: the schema is larger than %d MiB", maxSchema>>20)
	}
	return schema, nil
}

// EncodeSchema encodes a JSON schema reproducibly.
func EncodeSchema(schema []byte) string {
	if len(bytes.TrimSpace(schema)) == 0 {
		return ""
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write(schema) // a buffer never fails
	_ = writer.Close()
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// compiled is the schema of a version.
type compiled struct {
	*gojsonschema.Schema
	parts *schemas
}

// compile compiles the schema of a version. It returns nil if there is no schema.
func compile(v *packagesv1.SourceVersion) (*compiled, error) {
	text, err := Schema(v)
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return nil, err
	}
	parts, err := parseSchemas(text)
	if err != nil {
		return nil, fmt.Errorf("error loading the schema: %w", err)
	}
	schema, err := gojsonschema.NewSchema(localLoader{gojsonschema.NewBytesLoader(text)})
	if err != nil {
		return nil, fmt.Errorf("error loading the schema: %w", err)
	}
	return &compiled{schema, parts}, nil
}

// localLoader loads a schema that must not refer to other documents. The library would otherwise
// read files and make requests.
type localLoader struct{ gojsonschema.JSONLoader }

// LoaderFactory implements gojsonschema.JSONLoader.
func (localLoader) LoaderFactory() gojsonschema.JSONLoaderFactory { return remoteLoaders{} }

type remoteLoaders struct{}

// New implements gojsonschema.JSONLoaderFactory.
func (remoteLoaders) New(source string) gojsonschema.JSONLoader {
	return rejectingLoader{gojsonschema.NewStringLoader(""), source}
}

// rejectingLoader rejects a reference to another document.
type rejectingLoader struct {
	gojsonschema.JSONLoader

	source string
}

// LoadJSON implements gojsonschema.JSONLoader.
func (r rejectingLoader) LoadJSON() (any, error) {
	return nil, fmt.Errorf("reference to %q: a schema must not refer to other documents", r.source)
}

// validate validates a config against a schema and reports all problems.
func (c *compiled) validate(config map[string]any) error {
	if err := c.parts.checkConfig(config); err != nil {
		return fmt.Errorf("error validating configurations: %w", err)
	}
	text, err := json.Marshal(config)
	if err != nil {
		return errors.New("error validating configurations: config cannot be encoded as JSON")
	}
	result, err := c.Validate(gojsonschema.NewBytesLoader(text))
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
