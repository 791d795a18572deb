package bundle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

func offer(name string, versions ...packagesv1.SourceVersion) packagesv1.BundlePackage {
	return packagesv1.BundlePackage{Name: name, Source: packagesv1.BundlePackageSource{Repository: name, Versions: versions}}
}

func version(name string, images ...packagesv1.VersionImages) packagesv1.SourceVersion {
	return packagesv1.SourceVersion{Name: name, Digest: "chart " + name, Images: images}
}

func image(repository, digest string) packagesv1.VersionImages {
	return packagesv1.VersionImages{Repository: repository, Digest: digest}
}

func bundleOf(name string, packages ...packagesv1.BundlePackage) *packagesv1.PackageBundle {
	return &packagesv1.PackageBundle{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: packagesv1.PackageBundleSpec{Packages: packages}}
}

func TestCompareBundles(t *testing.T) {
	t.Parallel()
	rebuilt := version("1.0.0")
	rebuilt.Digest, rebuilt.Schema, rebuilt.Dependencies = "chart rebuilt", "x", []string{"same"}
	moved := offer("moved", version("1.0.0"))
	moved.Source.Registry, moved.Source.Repository, moved.WorkloadOnly = "r", "elsewhere", true
	older := bundleOf("v1-36-1",
		offer("same", version("1.0.0", image("i", "1"))), offer("gone", version("1.0.0", image("i", "1"))), offer("Upgraded", version("1.0.0", image("i", "1"), image("old", "1"))),
		offer("rebuilt", version("1.0.0")), offer("moved", version("1.0.0")), offer("reordered", version("1.0.0"), version("1.1.0")))
	newer := bundleOf("v1-36-2",
		offer("new", version("0.1.0", image("n", "1"))), offer("same", version("1.0.0", image("i", "1"))), moved,
		offer("upgraded", version("1.1.0", image("i", "2"), image("i", "1"), image("new", "1"))), offer("rebuilt", rebuilt), offer("reordered", version("1.1.0"), version("1.0.0")))
	want := bundle.Difference{From: "v1-36-1", To: "v1-36-2", Packages: []bundle.PackageDifference{
		{
			Name: "gone", Change: bundle.Removed, From: "1.0.0",
			Versions: []bundle.VersionDifference{{Name: "1.0.0", Change: bundle.Removed, From: "chart 1.0.0"}},
			Images:   []bundle.ImageDifference{{Repository: "i", Change: bundle.Removed, From: []string{"1"}}},
		},
		{Name: "moved", Change: bundle.Changed, From: "1.0.0", To: "1.0.0", Settings: []string{"source.registry", "source.repository", "workloadonly"}},
		{
			Name: "new", Change: bundle.Added, To: "0.1.0",
			Versions: []bundle.VersionDifference{{Name: "0.1.0", Change: bundle.Added, To: "chart 0.1.0"}},
			Images:   []bundle.ImageDifference{{Repository: "n", Change: bundle.Added, To: []string{"1"}}},
		},
		{
			Name: "rebuilt", Change: bundle.Changed, From: "1.0.0", To: "1.0.0",
			Versions: []bundle.VersionDifference{
				{Name: "1.0.0", Change: bundle.Changed, From: "chart 1.0.0", To: "chart rebuilt", Settings: []string{"dependencies", "schema"}},
			},
		},
		{Name: "reordered", Change: bundle.Changed, From: "1.0.0", To: "1.1.0"},
		{
			Name: "upgraded", Change: bundle.Changed, From: "1.0.0", To: "1.1.0", Settings: []string{"name", "source.repository"},
			Versions: []bundle.VersionDifference{
				{Name: "1.0.0", Change: bundle.Removed, From: "chart 1.0.0"},
				{Name: "1.1.0", Change: bundle.Added, To: "chart 1.1.0"},
			},
			Images: []bundle.ImageDifference{
				{Repository: "i", Change: bundle.Changed, From: []string{"1"}, To: []string{"1", "2"}},
				{Repository: "new", Change: bundle.Added, To: []string{"1"}},
				{Repository: "old", Change: bundle.Removed, From: []string{"1"}},
			},
		},
	}}
	if diff := cmp.Diff(want, bundle.Compare(older, newer)); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
	if !bundle.Compare(older, older).Empty() || bundle.Compare(older, newer).Empty() {
		t.Error("a bundle is different from itself, or two are the same")
	}
}

func TestPatchesKeepTheMinorVersionInUse(t *testing.T) {
	t.Parallel()
	older := bundleOf("v1-36-1", offer("a", version("1.2.3")), offer("b", version("1.2.3")), offer("c", version("v2.0.0-abc")), offer("d", version("main")), offer("e", version("1.0.0")))
	newer := bundleOf("v1-36-2", offer("a", version("1.2.9")), offer("b", version("1.3.0")), offer("c", version("v2.0.1-def")), offer("d", version("other")), offer("f", version("1.0.0")))
	tests := map[string]bool{"a": true, "A": true, "b": false, "B": false, "c": true, "d": false, "e": false, "f": true, "g": true}
	difference := bundle.Compare(older, newer)
	for name, want := range tests {
		if got := difference.KeepsMinor([]string{"a", name}); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
	if !difference.KeepsMinor(nil) {
		t.Error("where nothing is used, nothing can change")
	}
}
