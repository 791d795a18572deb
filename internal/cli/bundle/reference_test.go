package bundle

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

func TestIsTag(t *testing.T) {
	for name, want := range map[string]bool{
		"v1-36-1": true, "v1-36-latest": true, "v1-36-100": true,
		"v1-36-1.yaml": false, "./v1-36-1": false, "out/v1-36-1": false, "latest": false, "v1-36": false, "-": false, "": false, "v1-36-latest-latest": false,
	} {
		if got := isTag(name); got != want {
			t.Errorf("isTag(%q) = %t", name, got)
		}
	}
}

func TestSplitReference(t *testing.T) {
	for _, tc := range []struct{ reference, address, repository, tag string }{
		{"oci://r.example.com/bundles:v1-36-1", "r.example.com/", "bundles", "v1-36-1"},
		{"oci://r.example.com:5000/team/bundles:v1-36-latest", "r.example.com:5000/team/", "bundles", "v1-36-latest"},
		{"oci://r.example.com:5000/bundles", "", "", ""},
		{"oci://r.example.com/bundles:", "", "", ""},
		{"oci://bundles:v1-36-1", "", "", ""},
		{"oci://r.example.com/:v1-36-1", "", "", ""},
		{"oci://", "", "", ""},
	} {
		t.Run(tc.reference, func(t *testing.T) {
			address, repository, tag, err := splitReference(tc.reference)
			if address != tc.address || repository != tc.repository || tag != tc.tag {
				t.Errorf("got %q, %q, %q", address, repository, tag)
			}
			if (err != nil) != (tc.tag == "") || err != nil && !strings.Contains(err.Error(), "want oci://HOST/PATH/REPOSITORY:TAG") {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestRegistriesAndFilesAreDistinguished(t *testing.T) {
	for place, want := range map[string]bool{"plane": true, "oci://r.example.com": true, "site.tar": false, "r.example.com": false, "./plane": false} {
		if got := isRegistry(place); got != want {
			t.Errorf("isRegistry(%q) = %t", place, got)
		}
	}
	for address, want := range map[string]string{"plane": "plane", "r.example.com/x": "oci://r.example.com/x", "oci://r.example.com": "oci://r.example.com"} {
		if got := withScheme(address); got != want {
			t.Errorf("withScheme(%q) = %q, want %q", address, got, want)
		}
	}
}

func TestWanted(t *testing.T) {
	for _, tc := range []struct {
		name       string
		args       []string
		kubernetes string
		want, err  string
	}{
		{"bundle", []string{"v1-36-1"}, "", "v1-36-1", ""},
		{"newest for a version", nil, "1.36", "v1-36-latest", ""},
		{"both", []string{"v1-36-1"}, "1.36", "", "not both"},
		{"neither", nil, "", "", "pass a bundle, or --kube-version"},
		{"patch version", nil, "1.36.2", "", "please specify kube-version as <major>.<minor>"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := wanted(tc.args, tc.kubernetes)
			if got != tc.want || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestCompleteFiles(t *testing.T) {
	complete := completeFiles(1, "yaml", "yml")
	if got, directive := complete(nil, nil, ""); directive != cobra.ShellCompDirectiveFilterFileExt || !slices.Equal(got, []string{"yaml", "yml"}) {
		t.Errorf("first argument: %v, %v", got, directive)
	}
	if got, directive := complete(nil, []string{"a.yaml"}, ""); directive != cobra.ShellCompDirectiveNoFileComp || got != nil {
		t.Errorf("second argument: %v, %v", got, directive)
	}
}

func TestOpenRequiresReadableCA(t *testing.T) {
	p := &registries{caFiles: []string{filepath.Join(t.TempDir(), "missing.crt")}}
	if _, err := p.open("r.example.com"); err == nil || !strings.Contains(err.Error(), "reading CA certificates: ") {
		t.Errorf("got %v", err)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	invalid := filepath.Join(dir, "invalid.yaml")
	if err := os.WriteFile(invalid, []byte("kind: Pod\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const text = "apiVersion: packages.eks.amazonaws.com/v1alpha1\nkind: PackageBundle\nmetadata: {name: v1-36-1}\nspec: {packages: []}\n"
	b, err := readFile(&ui.IO{In: strings.NewReader(text)}, "-")
	if err != nil || b.Name != "v1-36-1" {
		t.Errorf("standard input: %v, %v", b, err)
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "missing.yaml"): "reading the bundle: ", invalid: "reading bundle \"" + invalid + "\": ",
	} {
		if _, err := readFile(nil, file); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestCreateKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "release.key")
	public, err := createKey(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x509.ParsePKIXPublicKey(public); err != nil {
		t.Errorf("the public key is invalid: %v", err)
	}
	for name, mode := range map[string]os.FileMode{file: 0o600, file + ".pub": 0o644} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, remaining := range []string{file + ".pub", file} {
		if _, err := createKey(file); err == nil || !strings.Contains(err.Error(), "keys are never overwritten") {
			t.Errorf("got %v", err)
		}
		if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
			t.Errorf("the private key changed: %v", err)
		}
		if err := os.Remove(remaining); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := createKey(file); err != nil {
		t.Errorf("without files: %v", err)
	}
}

// keyPair returns a private key and a file with its public key.
func keyPair(t *testing.T, name string) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return key, file
}

func TestReadKeys(t *testing.T) {
	_, one := keyPair(t, "one.pub")
	_, two := keyPair(t, "two.pub")
	if keys, err := bundle.ReadKeys([]string{one, two}); err != nil || len(keys) != 2 {
		t.Errorf("got %d keys, %v", len(keys), err)
	}
	if keys, err := bundle.ReadKeys(nil); err != nil || len(keys) != 0 {
		t.Errorf("got %d keys, %v", len(keys), err)
	}
	if _, err := bundle.ReadKeys([]string{one, filepath.Join(t.TempDir(), "missing.pub")}); err == nil || !strings.HasPrefix(err.Error(), "reading the public key: ") {
		t.Errorf("missing file: %v", err)
	}
}

func TestSignReplacesSignatureAndExcludes(t *testing.T) {
	key, file := keyPair(t, "release.pub")
	_, other := keyPair(t, "other.pub")
	trusted, err := bundle.ReadKeys([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	untrusted, err := bundle.ReadKeys([]string{other})
	if err != nil {
		t.Fatal(err)
	}
	b := &packagesv1.PackageBundle{Spec: packagesv1.PackageBundleSpec{Packages: []packagesv1.BundlePackage{{Name: "hello"}}}}
	b.Name, b.Annotations = "v1-36-1", map[string]string{"kept": "yes", packagesv1.ExcludesAnnotation: "old"}
	for _, tc := range []struct {
		excludes []string
		want     string
	}{
		{bundle.DefaultExcludes, bundle.EncodeExcludes(bundle.DefaultExcludes)},
		{[]string{""}, ""},
		{[]string{"", ".spec.packages[].source.registry"}, bundle.EncodeExcludes([]string{".spec.packages[].source.registry"})},
	} {
		if err := (&signOptions{excludes: tc.excludes}).sign(b, key); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, b.Annotations[packagesv1.ExcludesAnnotation]); diff != "" || b.Annotations["kept"] != "yes" {
			t.Errorf("annotations %v (-want +got)\n%s", b.Annotations, diff)
		}
		if err := checkSignature(b, trusted); err != nil {
			t.Errorf("excludes %q: %v", tc.excludes, err)
		}
	}
	if err := checkSignature(b, untrusted); err == nil || !strings.HasPrefix(err.Error(), "bundle v1-36-1: ") {
		t.Errorf("another key: %v", err)
	}
	if err := checkSignature(b, nil); err != nil {
		t.Errorf("without keys: %v", err)
	}
}
