package bundle_test

import (
	"bytes"
	"testing"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// Every input is accepted or rejected; an accepted bundle can be encoded, with the same signed
// form.
func FuzzParse(f *testing.F) {
	f.Add([]byte(published))
	f.Add([]byte("apiVersion: packages.eks.amazonaws.com/v1alpha1\nkind: PackageBundle\nmetadata: {name: v1-1-1, annotations: {eksa.aws.com/excludes: LmEK}}\nspec: {packages: []}\n"))
	f.Add([]byte(`{"apiVersion": "packages.eks.amazonaws.com/v1alpha1", "kind": "PackageBundle", "metadata": {"labels": {"a": "0o7"}}, "spec": {"packages": null}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := bundle.Parse(text)
		if err != nil {
			return
		}
		_ = bundle.Check(b)
		_ = bundle.Compare(b, b)
		form, err := bundle.Canonical(b)
		if err != nil {
			return
		}
		written, err := bundle.Format(b)
		if err != nil {
			t.Fatalf("it was read, and can't be written: %v", err)
		}
		again, err := bundle.Parse(written)
		if err != nil {
			t.Fatalf("it was written, and can't be read: %v\n%s", err, written)
		}
		second, err := bundle.Canonical(again)
		if err != nil || !kept(form) && !bytes.Equal(form, second) {
			t.Fatalf("the signed form changed: %v\n%s\n%s", err, form, second)
		}
	})
}

// kept reports whether a value has a form that a file can't have.
func kept(form []byte) bool {
	for _, field := range []string{"finalizers", "ownerReferences", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		if bytes.Contains(form, []byte("  "+field+":")) {
			return true
		}
	}
	return false
}

// An accepted name keeps its spelling, and compares equal to itself.
func FuzzParseName(f *testing.F) {
	for _, seed := range []string{"v1-36-4", "1-1-1", "v1-1-1-rc", "v", "v1-2", "--", "v1-2-"} {
		f.Add(seed, "v1-36-4")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		first, err := bundle.ParseName(a)
		if err != nil {
			return
		}
		if first.String() != a || first.Major < 0 || first.Minor < 0 || first.Build < 0 {
			t.Errorf("%q was read as %+v", a, first)
		}
		if again, err := bundle.ParseName(a); err != nil || first.Compare(again) != 0 {
			t.Errorf("%q is not the same as itself", a)
		}
		if second, err := bundle.ParseName(b); err == nil && first.Compare(second) != -second.Compare(first) {
			t.Errorf("%s and %s: each is before the other", first, second)
		}
	})
}

// Every config is accepted or rejected.
func FuzzParseConfig(f *testing.F) {
	for _, seed := range []string{"", "a: 1", "a: &x [1]\nb: *x", "- a", "a: !!binary YQ==", "? [a]\n: b", "a: .inf", "<<: {a: 1}", "a: 2001-01-01"} {
		f.Add(seed)
	}
	version := &packagesv1.SourceVersion{Schema: bundle.EncodeSchema([]byte(helloSchema))}
	f.Fuzz(func(t *testing.T, config string) {
		values, err := bundle.ParseConfig(config)
		if err == nil && values == nil {
			t.Error("neither values nor an error")
		}
		_ = bundle.ValidateConfig(version, config)
	})
}

// Every schema is accepted or rejected, and validation always terminates.
func FuzzSchema(f *testing.F) {
	for _, seed := range []string{
		helloSchema, "{}", "true", `{"$ref": "#"}`, `{"allOf": [{"$ref": "#/definitions/a"}], "definitions": {"a": {"$ref": "#"}}}`,
		`{"properties": {"a": {"$ref": "#"}}}`, `{"$id": "x", "items": {"$id": "y", "$ref": "x#/items"}}`, `{"patternProperties": {"^a": {"const": 1}}}`,
		`{"if": {"required": ["a"]}, "then": {"minProperties": 1}, "else": false}`, `{"dependencies": {"a": ["b"], "b": {"$ref": "#/dependencies/a"}}}`,
	} {
		f.Add([]byte(seed), "a: {b: [1, x, null]}")
	}
	f.Fuzz(func(_ *testing.T, schema []byte, config string) {
		_ = bundle.ValidateConfig(&packagesv1.SourceVersion{Schema: bundle.EncodeSchema(schema)}, config)
	})
}
