package shipped

import (
	"crypto"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/catalog"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	text, err := pki.NewKey()
	must(t, err)
	key, err := pki.ParseKey(text)
	must(t, err)
	return key
}

func newRegistry(t *testing.T) *transfer.Registry {
	t.Helper()
	r, err := transfer.Open(transfer.Options{Address: artifacttest.NewRegistry(t, artifacttest.RegistryOptions{}).Host, PlainHTTP: true})
	must(t, err)
	return r
}

func fetch(t *testing.T, r *transfer.Registry, tag string) *transfer.Fetched {
	t.Helper()
	b, err := transfer.Fetch(t.Context(), r, transfer.Ref{Repository: Repository, Tag: tag})
	must(t, err)
	return b
}

func TestEveryKubernetesVersionHasASignedBundle(t *testing.T) {
	r, key := newRegistry(t), newKey(t)
	must(t, Publish(t.Context(), r, key))
	keys, err := publicKeys(key)
	must(t, err)
	for _, version := range catalog.KubernetesVersions {
		tag, err := bundle.LatestTag(version)
		must(t, err)
		latest := fetch(t, r, tag)
		must(t, bundle.Verify(latest.PackageBundle, keys))
		if name, err := bundle.ParseName(latest.Name); err != nil || name.Kubernetes() != version || name.Build != 2 {
			t.Errorf("the latest bundle for %s is %q (%v)", version, latest.Name, err)
		}
		for _, p := range latest.Spec.Packages {
			for _, v := range p.Source.Versions {
				_, err := r.Manifest(t.Context(), transfer.Ref{Kind: transfer.KindChart, Repository: p.Source.Repository, Digest: v.Digest})
				must(t, err)
			}
		}
	}
}

func TestCatalogContents(t *testing.T) {
	all, err := Bundles()
	must(t, err)
	for _, built := range all {
		hello, err := bundle.Find(built.Bundle, "hello-eks-anywhere", "")
		must(t, err)
		if bundle.ValidateConfig(hello.Version, "title: x") != nil || bundle.ValidateConfig(hello.Version, "titel: x") == nil {
			t.Errorf("%s: hello does not tell a right config from a wrong one", built.Bundle.Name)
		}
		notes, err := bundle.Find(built.Bundle, "notes", "")
		must(t, err)
		needed, err := bundle.Dependencies(built.Bundle, notes)
		must(t, err)
		if !slices.Contains(needed, "notes-store") {
			t.Errorf("%s: notes needs %q", built.Bundle.Name, needed)
		}
		store, err := bundle.Find(built.Bundle, "notes-store", "")
		must(t, err)
		// A dependency is rendered with the config of the package that needs it.
		if err := errors.Join(bundle.ValidateConfig(notes.Version, "replicas: 3"), bundle.ValidateConfig(store.Version, "replicas: 3")); err != nil {
			t.Errorf("%s: %v", built.Bundle.Name, err)
		}
	}
}

func TestBundleNamesAreKnownWithoutBuilding(t *testing.T) {
	all, err := Bundles()
	must(t, err)
	var built []string
	for _, b := range all {
		built = append(built, b.Bundle.Name)
	}
	names, err := Names()
	must(t, err)
	if diff := cmp.Diff(built, names); diff != "" || len(names) == 0 {
		t.Errorf("names (-built +known):\n%s", diff)
	}
}

func TestVersionsMatchTheBuiltOnes(t *testing.T) {
	files, err := filepath.Glob("../../../../kube/kubernetes/*.mod")
	must(t, err)
	var minors []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		if m := regexp.MustCompile(`k8s\.io/kubernetes v(\d+\.\d+)\.`).FindSubmatch(text); m != nil {
			minors = append(minors, string(m[1]))
		}
	}
	slices.Sort(minors)
	if diff := cmp.Diff(minors, catalog.KubernetesVersions); diff != "" {
		t.Errorf("there are bundles for other versions than those of Kubernetes that Drover builds (-built +bundles):\n%s", diff)
	}
}

func TestExistingBundlesAreKept(t *testing.T) {
	r, key := newRegistry(t), newKey(t)
	must(t, Publish(t.Context(), r, key))
	before := fetch(t, r, "v1-36-2")
	must(t, Publish(t.Context(), r, key))
	if after := fetch(t, r, "v1-36-2"); after.Ref.Digest != before.Ref.Digest {
		t.Error("a bundle that did not change was published again")
	}

	all, err := Bundles()
	must(t, err)
	newer := all[len(all)-1]
	newer.Bundle.Name = "v1-36-9"
	must(t, bundle.Sign(newer.Bundle, newKey(t)))
	_, err = transfer.Publish(t.Context(), r, transfer.Publication{Bundle: newer.Bundle, Charts: newer.Charts, Repository: Repository})
	must(t, err)
	must(t, Publish(t.Context(), r, newKey(t)))
	if after := fetch(t, r, "v1-36-2"); after.Ref.Digest != before.Ref.Digest {
		t.Error("a bundle with a foreign signature was replaced")
	}
	if latest := fetch(t, r, "v1-36-latest"); latest.Name != "v1-36-9" {
		t.Errorf("the latest is %s, want the newer one that a user published", latest.Name)
	}
}

func TestChangedBundleIsReplaced(t *testing.T) {
	r, key := newRegistry(t), newKey(t)
	all, err := Bundles()
	must(t, err)
	old := all[0]
	old.Bundle.Spec.Packages = old.Bundle.Spec.Packages[:1]
	must(t, bundle.Sign(old.Bundle, key))
	_, err = transfer.Publish(t.Context(), r, transfer.Publication{Bundle: old.Bundle, Charts: old.Charts, Repository: Repository})
	must(t, err)
	must(t, Publish(t.Context(), r, key))
	if now := fetch(t, r, old.Bundle.Name); len(now.Spec.Packages) < 2 {
		t.Error("a bundle of an earlier Drover, signed by this plane, was not brought up to date")
	}
}
