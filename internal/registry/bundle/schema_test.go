package bundle_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

const helloSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "sourceRegistry": {"type": "string", "default": "x"},
    "title": {"type": "string", "pattern": "^[a-z]+$"},
    "replicas": {"type": "integer", "minimum": 1},
    "mode": {"enum": ["a", "b"]},
    "list": {"type": "array", "items": {"$ref": "#/$defs/item"}}
  },
  "$defs": {"item": {"type": "object", "required": ["name"]}}
}`

func TestConfigIsValidatedAgainstTheSchema(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ config, want string }{
		"empty":            {"", ""},
		"only a comment":   {"# nothing", ""},
		"null":             {"null", ""},
		"good":             {"title: hello\nreplicas: 2\nmode: a\nlist: [{name: x}]", ""},
		"unknown field":    {"fakeConfig: 1", "error validating configurations - (root): Additional property fakeConfig is not allowed\n"},
		"wrong type":       {"title: 1", "error validating configurations - title: Invalid type. Expected: string, given: integer\n"},
		"too small":        {"replicas: 0", "error validating configurations - replicas: Must be greater than or equal to 1\n"},
		"not of the enum":  {"mode: c", "error validating configurations - mode: mode must be one of the following: \"a\", \"b\"\n"},
		"missing below":    {"list: [{}]", "error validating configurations - list.0: name is required\n"},
		"value not quoted": {"title: SeCrEt1", "error validating configurations - title: Does not match pattern '^[a-z]+$'\n"},
		"no YAML":          {"a: b\n\tc: SeCrEt1", "error converting package configurations to yaml: invalid YAML in line 2"},
		"a list":           {"[SeCrEt1]", "error converting package configurations to yaml: config must be a map"},
		"a text":           {"SeCrEt1", "error converting package configurations to yaml: config must be a map"},
	}
	version := &packagesv1.SourceVersion{Schema: bundle.EncodeSchema([]byte(helloSchema))}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := bundle.ValidateConfig(version, tt.config); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if strings.Contains(got, "SeCrEt1") {
				t.Errorf("a value was disclosed: %q", got)
			}
		})
	}
}

func TestEveryProblemIsReported(t *testing.T) {
	t.Parallel()
	version := &packagesv1.SourceVersion{Schema: bundle.EncodeSchema([]byte(helloSchema))}
	err := bundle.ValidateConfig(version, "title: 1\nreplicas: 0\n")
	if err == nil || strings.Count(err.Error(), "- ") != 2 || !strings.HasPrefix(err.Error(), "error validating configurations - ") {
		t.Errorf("got %v", err)
	}
}

func packed(text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	whole := packed(helloSchema)
	raw, err := base64.StdEncoding.DecodeString(whole)
	must(t, err)
	tests := map[string]struct{ schema, config, want string }{
		"none accepts anything":          {"", "any: thing", ""},
		"none wants YAML":                {"", "[", "error converting package configurations to yaml: invalid YAML in line 1"},
		"nothing, packed":                {packed(" \n"), "any: thing", ""},
		"true":                           {packed("true"), "any: thing", ""},
		"an empty object":                {packed("{}"), "any: thing", ""},
		"false":                          {packed("false"), "", "error validating configurations - (root): False always fails validation\n"},
		"no base64":                      {"?", "", "error decoding configurations"},
		"no gzip":                        {"aGVsbG8=", "", "error when uncompressing configurations"},
		"cut off":                        {base64.StdEncoding.EncodeToString(raw[:len(raw)/2]), "", "error reading configurations"},
		"more than there may be":         {packed(strings.Repeat(" ", 5<<20)), "", "larger than 4 MiB"},
		"no JSON":                        {packed("{"), "", "error loading the schema"},
		"no schema":                      {packed("3"), "", "error loading the schema"},
		"of no type":                     {packed(`{"type": "thing"}`), "", "error loading the schema"},
		"itself":                         {packed(`{"$ref": "#"}`), "", "refers to itself"},
		"itself, through others":         {packed(`{"allOf": [{"$ref": "#/definitions/a"}], "definitions": {"a": {"anyOf": [{"$ref": "#"}]}}}`), "", "refers to itself"},
		"itself, written as in a URL":    {packed(`{"$ref": "#/definitions/a%20b", "definitions": {"a b": {"not": {"$ref": "#/definitions/a%20b"}}}}`), "", "refers to itself"},
		"itself, by an id":               {packed(`{"$id": "http://a.example/x", "allOf": [{"$ref": "x"}]}`), "", "refers to itself"},
		"itself, by a name":              {packed(`{"$id": "http://a.example/x", "definitions": {"n": {"$id": "#n", "allOf": [{"$ref": "#n"}]}}}`), "", "refers to itself"},
		"itself, by an id with a dot":    {packed(`{"$id": "http://a.example/x", "allOf": [{"$ref": "./x"}]}`), "", "refers to itself"},
		"itself, if something is there":  {packed(`{"dependencies": {"a": {"$ref": "#"}}}`), "a: 1", "refers to itself"},
		"itself, by no pointer":          {packed(`{"$ref": "#definitions/a"}`), "", "refers to itself"},
		"itself, under a condition":      {packed(`{"if": {"type": "object"}, "then": {"$ref": "#"}}`), "", "refers to itself"},
		"a tree, which has an end":       {packed(`{"type": "object", "properties": {"child": {"$ref": "#"}}}`), "child: {child: {}}", ""},
		"a tree, and a leaf of it wrong": {packed(`{"type": "object", "properties": {"child": {"$ref": "#"}}}`), "child: {child: 1}", "error validating configurations - child.child: Invalid type. Expected: object, given: integer\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := bundle.ValidateConfig(&packagesv1.SourceVersion{Schema: tt.schema}, tt.config)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestRemoteSchemaReferencesAreRejected(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "schema.json")
	must(t, os.WriteFile(file, []byte("{}"), 0o600))
	for _, where := range []string{server.URL + "/s.json", "file://" + file} {
		schema := bundle.EncodeSchema([]byte(`{"properties": {"a": {"$ref": "` + where + `"}}}`))
		err := bundle.ValidateConfig(&packagesv1.SourceVersion{Schema: schema}, "a: 1")
		if err == nil || !strings.Contains(err.Error(), "must not refer to other documents") {
			t.Errorf("%s: got %v", where, err)
		}
	}
	if asked.Load() > 0 {
		t.Error("got a request for a schema, want none")
	}
}

func TestSchemaRoundTrips(t *testing.T) {
	t.Parallel()
	got, err := bundle.Schema(&packagesv1.SourceVersion{Schema: bundle.EncodeSchema([]byte(helloSchema))})
	must(t, err)
	if string(got) != helloSchema {
		t.Errorf("got %s", got)
	}
	if text := bundle.EncodeSchema(nil); text != "" {
		t.Errorf("no schema is %q", text)
	}
	first := bundle.EncodeSchema([]byte(helloSchema))
	if second := bundle.EncodeSchema([]byte(helloSchema)); first != second {
		t.Error("the same schema is packed in two ways")
	}
}

func TestNumbersOfAConfigAreExact(t *testing.T) {
	t.Parallel()
	got, err := bundle.ParseConfig("big: 9007199254740993\nhalf: 0.5\ntext: \"1\"\n")
	must(t, err)
	want := map[string]any{"big": int64(9007199254740993), "half": 0.5, "text": "1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}
