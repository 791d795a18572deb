package packages

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// bundleOf returns a bundle with packages in one or more versions.
func bundleOf(packages map[string][]string, order ...string) *packagesv1.PackageBundle {
	b := &packagesv1.PackageBundle{}
	b.Name = "v1-36-1"
	for _, name := range order {
		p := packagesv1.BundlePackage{Name: name}
		for _, version := range packages[name] {
			p.Source.Versions = append(p.Source.Versions, packagesv1.SourceVersion{Name: version, Digest: "sha256:" + version})
		}
		b.Spec.Packages = append(b.Spec.Packages, p)
	}
	return b
}

func TestCatalogFlags(t *testing.T) {
	for _, tc := range []struct {
		name                          string
		cluster, kubernetes, registry string
		want                          string
	}{
		{name: "cluster", cluster: "dev"},
		{name: "version", kubernetes: "1.36"},
		{name: "version of a registry", kubernetes: "1.36", registry: "registry.example.com"},
		{name: "cluster and version", cluster: "dev", kubernetes: "1.36"},
		{name: "nothing", want: "please specify kube-version or cluster name"},
		{name: "registry alone", registry: "registry.example.com", want: "please specify kube-version or cluster name"},
		{name: "registry of a cluster", cluster: "dev", registry: "registry.example.com", want: "--registry requires --kube-version"},
		{name: "patch version", kubernetes: "1.36.2", want: "please specify kube-version as <major>.<minor>"},
		{name: "prefix", kubernetes: "v1.36", want: "please specify kube-version as <major>.<minor>"},
		{name: "trailing text", kubernetes: "1.36-latest", want: "please specify kube-version as <major>.<minor>"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &catalog{options: options{cluster: tc.cluster}, kubernetes: tc.kubernetes, registry: tc.registry}
			err := c.check()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestCatalogTable(t *testing.T) {
	var out bytes.Buffer
	b := bundleOf(map[string][]string{"hello": {"0.2.0", "0.1.0"}, "base": {"1.0.0"}, "empty": nil}, "hello", "base", "empty")
	if err := catalogTable(&out, b); err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"Package", "Version(s)"}, {"-------", "----------"}, {"hello", "0.2.0,", "0.1.0"}, {"base", "1.0.0"}, {"empty"}}
	if diff := cmp.Diff(want, words(out.String())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// words splits a table into lines and words.
func words(table string) [][]string {
	var out [][]string
	for line := range strings.Lines(table) {
		out = append(out, strings.Fields(line))
	}
	return out
}

func TestEntryOf(t *testing.T) {
	b := bundleOf(nil, "Hello", "base")
	for _, tc := range []struct{ name, wanted, want, err string }{
		{"exact name", "base", "base", ""},
		{"another case", "hELLO", "Hello", ""},
		{"unknown", "cat", "", `package "cat" not found in bundle v1-36-1, which contains: Hello, base`},
		{"part of a name", "hell", "", `package "hell" not found in bundle v1-36-1, which contains: Hello, base`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := entryOf(b, tc.wanted)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || got.Name != tc.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	if _, err := entryOf(bundleOf(nil), "cat"); err == nil || !strings.HasSuffix(err.Error(), "which contains: none") {
		t.Errorf("an empty bundle: %v", err)
	}
}

func TestPrintPackageOmitsStatus(t *testing.T) {
	var out bytes.Buffer
	p := inspect.PackageTemplate("dev", "generated-hello", "hello")
	p.Status.State = packagesv1.StateInstalled
	if err := printPackage(&out, p); err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: packages.eks.amazonaws.com/v1alpha1
kind: Package
metadata:
  name: generated-hello
  namespace: eksa-packages-dev
spec:
  packageName: hello
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestHasVersionOf(t *testing.T) {
	b := bundleOf(map[string][]string{"hello": {"0.2.0", "0.1.0"}}, "hello")
	for _, tc := range []struct {
		name                            string
		pack, pinned, installed, digest string
		want                            bool
	}{
		{"latest", "hello", "", "0.2.0", "sha256:0.2.0", true},
		{"older than the latest", "hello", "", "0.1.0", "sha256:0.1.0", false},
		{"pinned", "hello", "0.1.0", "0.1.0", "sha256:0.1.0", true},
		{"not the pinned one", "hello", "0.1.0", "0.2.0", "sha256:0.2.0", false},
		{"same version with another digest", "hello", "", "0.2.0", "sha256:old", false},
		{"not installed", "hello", "", "", "", false},
		{"not in the bundle", "cat", "", "0.2.0", "sha256:0.2.0", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &packagesv1.Package{Spec: packagesv1.PackageSpec{PackageName: tc.pack, PackageVersion: tc.pinned}}
			p.Status.CurrentVersion, p.Status.Source.Digest = tc.installed, tc.digest
			if got := hasVersionOf(b, p); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
