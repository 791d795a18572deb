package bundle_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

func TestInvalidBundlesAreRejected(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"empty":         {" \n", "package bundle artifact is empty"},
		"no YAML":       {"a: b: c", "unmarshalling package bundle: "},
		"another kind":  {"apiVersion: v1\nkind: Pod\n", `unmarshalling package bundle: got kind "Pod" of "v1", want PackageBundle`},
		"another shape": {strings.Replace(published, "packages:", "packages: 3 #", 1), "unmarshalling package bundle: "},
		"too large":     {"# " + strings.Repeat("x", bundle.MaxSize), "unmarshalling package bundle: larger than"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := bundle.Parse([]byte(tt.text)); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestBundleRoundTrips(t *testing.T) {
	t.Parallel()
	b := parse(t, published)
	b.ResourceVersion, b.Finalizers = "12", []string{"a"}
	text, err := bundle.Format(b)
	must(t, err)
	for _, unwanted := range []string{"status", "resourceVersion", "finalizers", "creationTimestamp"} {
		if strings.Contains(string(text), unwanted) {
			t.Errorf("%s is in the file:\n%s", unwanted, text)
		}
	}
	want := parse(t, published)
	want.Status = packagesv1.PackageBundleStatus{}
	if diff := cmp.Diff(want, parse(t, string(text))); diff != "" {
		t.Errorf("bundle (-want +got):\n%s", diff)
	}
}

func TestBundleIsValidatedBeforePublishing(t *testing.T) {
	t.Parallel()
	must(t, bundle.Check(world(map[string]string{"a": "b", "b": ""})))
	first := func(b *packagesv1.PackageBundle) *packagesv1.SourceVersion {
		return &b.Spec.Packages[0].Source.Versions[0]
	}
	tests := map[string]struct {
		change func(*packagesv1.PackageBundle)
		want   string
	}{
		"name":          {func(b *packagesv1.PackageBundle) { b.Name = "mine" }, "Invalid bundle name"},
		"empty":         {func(b *packagesv1.PackageBundle) { b.Spec.Packages = nil }, "the bundle contains no packages"},
		"twice":         {func(b *packagesv1.PackageBundle) { b.Spec.Packages = append(b.Spec.Packages, offer("A")) }, `duplicate package "A"`},
		"no repository": {func(b *packagesv1.PackageBundle) { b.Spec.Packages[0].Source.Repository = "" }, "name and repository are required"},
		"no versions":   {func(b *packagesv1.PackageBundle) { b.Spec.Packages[0].Source.Versions = nil }, "no versions"},
		"no digest":     {func(b *packagesv1.PackageBundle) { first(b).Digest = "latest" }, `invalid digest "latest"`},
		"version latest": {
			func(b *packagesv1.PackageBundle) { first(b).Name = "latest" }, `invalid version name "latest"`,
		},
		"version twice": {func(b *packagesv1.PackageBundle) {
			p := &b.Spec.Packages[0]
			p.Source.Versions = append(p.Source.Versions, p.Source.Versions[0])
		}, `duplicate version "1.0.0"`},
		"image":  {func(b *packagesv1.PackageBundle) { first(b).Images = []packagesv1.VersionImages{image("i", "")} }, `image "i"`},
		"schema": {func(b *packagesv1.PackageBundle) { first(b).Schema = "?" }, "error decoding configurations"},
		"cycle":  {func(b *packagesv1.PackageBundle) { first(b).Dependencies = []string{"a"} }, "dependency cycle"},
		"needs":  {func(b *packagesv1.PackageBundle) { first(b).Dependencies = []string{"x"} }, "package not found in bundle (v1-36-1): x"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := world(map[string]string{"a": ""})
			tt.change(b)
			if err := bundle.Check(b); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want one with %q", err, tt.want)
			}
		})
	}
}
