package bundle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// world contains packages by name, with the dependencies of their only version.
func world(dependencies map[string]string) *packagesv1.PackageBundle {
	b := &packagesv1.PackageBundle{ObjectMeta: metav1.ObjectMeta{Name: "v1-36-1"}}
	for name, needs := range dependencies {
		version := packagesv1.SourceVersion{Name: "1.0.0", Digest: digest(name), Dependencies: strings.Fields(needs)}
		b.Spec.Packages = append(b.Spec.Packages, packagesv1.BundlePackage{
			Name: name, Source: packagesv1.BundlePackageSource{Repository: name, Versions: []packagesv1.SourceVersion{version}},
		})
	}
	return b
}

func TestFindPackages(t *testing.T) {
	t.Parallel()
	b := parse(t, published)
	hello := &b.Spec.Packages[0]
	hello.Source.Versions = append(hello.Source.Versions, packagesv1.SourceVersion{Name: "0.9", Digest: digest("0.9")})
	b.Spec.Packages = append(b.Spec.Packages, packagesv1.BundlePackage{Name: "empty"})
	tests := []struct {
		name, version, want string
		latest              bool
	}{
		{"hello", "", "1.0", true},
		{"HELLO", "latest", "1.0", true},
		{"hello", "1.0", "1.0", false},
		{"hello", "0.9", "0.9", false},
		{"hello", digest("0.9"), "0.9", false},
		{"hello", "Latest", "package version not found in bundle (v1-36-4): hello @ Latest", false},
		{"hello", "2.0", "package version not found in bundle (v1-36-4): hello @ 2.0", false},
		{"empty", "", "package version not found in bundle (v1-36-4): empty @ latest", false},
		{"world", "1.0", "package not found in bundle (v1-36-4): world", false},
		{"", "", "package not found in bundle (v1-36-4): ", false},
	}
	for _, tt := range tests {
		found, err := bundle.Find(b, tt.name, tt.version)
		got := fmt.Sprint(err)
		if err == nil {
			got = found.Version.Name
			if found.Latest != tt.latest || found.Package.Name != "hello" {
				t.Errorf("%s@%s: %+v", tt.name, tt.version, found)
			}
		}
		if got != tt.want {
			t.Errorf("%s@%s: got %s, want %s", tt.name, tt.version, got, tt.want)
		}
	}
}

func TestDependenciesAreInInstallOrder(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		world map[string]string
		want  []string
	}{
		"none":              {map[string]string{"a": ""}, []string{}},
		"one":               {map[string]string{"a": "b", "b": ""}, []string{"b"}},
		"a chain":           {map[string]string{"a": "b", "b": "c", "c": "d", "d": ""}, []string{"d", "c", "b"}},
		"a diamond":         {map[string]string{"a": "b c", "b": "d", "c": "d", "d": ""}, []string{"d", "b", "c"}},
		"in another case":   {map[string]string{"a": "B", "b": ""}, []string{"b"}},
		"named twice":       {map[string]string{"a": "b b B", "b": ""}, []string{"b"}},
		"needed indirectly": {map[string]string{"a": "c b", "b": "c", "c": ""}, []string{"c", "b"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := world(tt.world)
			found, err := bundle.Find(b, "a", "")
			must(t, err)
			got, err := bundle.Dependencies(b, found)
			must(t, err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnsatisfiableDependenciesAreRejected(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		world map[string]string
		want  string
	}{
		"itself":          {map[string]string{"a": "a"}, "dependency cycle: a -> a"},
		"each other":      {map[string]string{"a": "b", "b": "a"}, "dependency cycle: a -> b -> a"},
		"below":           {map[string]string{"a": "b", "b": "c", "c": "B"}, "dependency cycle: b -> c -> b"},
		"not there":       {map[string]string{"a": "b"}, "package not found in bundle (v1-36-1): b"},
		"not there below": {map[string]string{"a": "b", "b": "c"}, "package not found in bundle (v1-36-1): c"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := world(tt.world)
			found, err := bundle.Find(b, "a", "")
			must(t, err)
			_, err = bundle.Dependencies(b, found)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			var cycle *bundle.CycleError
			if errors.As(err, &cycle) != strings.Contains(tt.want, "cycle") {
				t.Errorf("%T", err)
			}
		})
	}
}

func TestBundleMayRequireANewerDrover(t *testing.T) {
	t.Parallel()
	tests := []struct {
		needs, have string
		want        string
	}{
		{"", "v0.1.0", ""},
		{"v0.1.0", "v0.1.0", ""},
		{"v0.1.0", "v0.2.0", ""},
		{"v0.1.0", "v0.1.0-dev.12+gabcdef0", ""},
		{"v9.0.0", "v0.1.0-dev", ""},
		{"v0.2.0", "v0.1.9", "bundle v1-36-1 requires Drover v0.2.0; this is v0.1.9"},
		{"v0.2.0", "v0.2.0-rc.1", "bundle v1-36-1 requires Drover v0.2.0; this is v0.2.0-rc.1"},
		{"soon", "v0.1.0", `invalid minControllerVersion "soon" in bundle v1-36-1: want a version such as v1.2.3`},
		{"v0.1.0", "mine", `invalid version of Drover "mine": want a version such as v1.2.3`},
	}
	for _, tt := range tests {
		b := world(nil)
		b.Spec.MinVersion = tt.needs
		got := ""
		if err := bundle.CheckVersion(b, tt.have); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s with %s: got %q, want %q", tt.needs, tt.have, got, tt.want)
		}
	}
}
