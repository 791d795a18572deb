package bundle_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

func TestWhatIsNoBundleIsRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"empty":         {" \n", "package bundle artifact is empty"},
		"no YAML":       {"a: b: c", "unmarshalling package bundle: "},
		"another kind":  {"apiVersion: v1\nkind: Pod\n", `unmarshalling package bundle: it is a "Pod" of "v1", not a PackageBundle`},
		"another shape": {strings.Replace(published, "packages:", "packages: 3 #", 1), "unmarshalling package bundle: "},
		"too large":     {"# " + strings.Repeat("x", bundle.MaxSize), "unmarshalling package bundle: it has more than"},
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

func TestABundleIsWrittenAsItWasRead(t *testing.T) {
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

func TestABundleIsCheckedBeforeItIsPublished(t *testing.T) {
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
		"empty":         {func(b *packagesv1.PackageBundle) { b.Spec.Packages = nil }, "there are no packages in it"},
		"twice":         {func(b *packagesv1.PackageBundle) { b.Spec.Packages = append(b.Spec.Packages, offer("A")) }, `package "A" is in it twice`},
		"no repository": {func(b *packagesv1.PackageBundle) { b.Spec.Packages[0].Source.Repository = "" }, "needs a name and a repository"},
		"no versions":   {func(b *packagesv1.PackageBundle) { b.Spec.Packages[0].Source.Versions = nil }, "it has no versions"},
		"no digest":     {func(b *packagesv1.PackageBundle) { first(b).Digest = "latest" }, `has the digest "latest"`},
		"version latest": {
			func(b *packagesv1.PackageBundle) { first(b).Name = "latest" }, `"latest" is not a name for a version`,
		},
		"version twice": {func(b *packagesv1.PackageBundle) {
			p := &b.Spec.Packages[0]
			p.Source.Versions = append(p.Source.Versions, p.Source.Versions[0])
		}, `version "1.0.0" is in it twice`},
		"image":  {func(b *packagesv1.PackageBundle) { first(b).Images = []packagesv1.VersionImages{image("i", "")} }, `has an image "i"`},
		"schema": {func(b *packagesv1.PackageBundle) { first(b).Schema = "?" }, "error decoding configurations"},
		"cycle":  {func(b *packagesv1.PackageBundle) { first(b).Dependencies = []string{"a"} }, "in a circle"},
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
