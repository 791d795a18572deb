package bundle_test

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// excludes is base64 of the two paths that mirrors rewrite, as published bundles have it.
const excludes = "LnNwZWMucGFja2FnZXNbXS5zb3VyY2UucmVnaXN0cnkKLnNwZWMucGFja2FnZXNbXS5zb3VyY2UucmVwb3NpdG9yeQo="

// published is a bundle in a registry, without its signature.
const published = `apiVersion: packages.eks.amazonaws.com/v1alpha1
kind: PackageBundle
metadata:
  annotations:
    eksa.aws.com/excludes: ` + excludes + `
  creationTimestamp: null
  name: v1-36-4
  namespace: eksa-packages
spec:
  minControllerVersion: v0.1.0
  packages:
  - name: hello
    workloadonly: true
    source:
      registry: registry.example.com
      repository: hello/chart
      versions:
      - name: "1.0"
        digest: sha256:0000000000000000000000000000000000000000000000000000000000000001
        images:
        - repository: hello/image
          digest: sha256:0000000000000000000000000000000000000000000000000000000000000002
        schema: H4sIAAAAAAAA
        dependencies: [base]
  - name: base
    source:
      repository: base
      versions:
      - digest: sha256:0000000000000000000000000000000000000000000000000000000000000003
        name: 2022-01-01
status:
  state: available
`

// signed is the signed form, written by hand.
const signed = `apiVersion: packages.eks.amazonaws.com/v1alpha1
kind: PackageBundle
metadata:
  annotations:
    eksa.aws.com/excludes: ` + excludes + `
  name: v1-36-4
  namespace: eksa-packages
spec:
  packages:
  - name: hello
    source:
      versions:
      - dependencies:
        - base
        digest: sha256:0000000000000000000000000000000000000000000000000000000000000001
        images:
        - digest: sha256:0000000000000000000000000000000000000000000000000000000000000002
          repository: hello/image
        name: "1.0"
        schema: H4sIAAAAAAAA
    workloadonly: true
  - name: base
    source:
      versions:
      - digest: sha256:0000000000000000000000000000000000000000000000000000000000000003
        name: "2022-01-01"
`

func signedBundle(t testing.TB, by *pair) *packagesv1.PackageBundle {
	t.Helper()
	b := parse(t, published)
	b.Annotations[packagesv1.SignatureAnnotation] = by.sign(signed)
	return b
}

func TestCanonicalFormMatchesTheReference(t *testing.T) {
	t.Parallel()
	got, err := bundle.Canonical(parse(t, published))
	must(t, err)
	if diff := cmp.Diff(signed, string(got)); diff != "" {
		t.Errorf("signed form (-want +got):\n%s", diff)
	}
}

func TestCanonicalFormIsStableAcrossClients(t *testing.T) {
	t.Parallel()
	b := parse(t, published)
	b.TypeMeta = metav1.TypeMeta{}
	got, err := bundle.Canonical(b)
	must(t, err)
	if diff := cmp.Diff(signed, string(got)); diff != "" {
		t.Errorf("signed form (-want +got):\n%s", diff)
	}
}

func TestForeignAnnotationsLeaveAnEmptyMap(t *testing.T) {
	t.Parallel()
	b := parse(t, published)
	b.Annotations = map[string]string{"somebody": "else"}
	got, err := bundle.Canonical(b)
	must(t, err)
	if !strings.Contains(string(got), "metadata:\n  annotations: {}\n  name: v1-36-4\n") {
		t.Errorf("no empty map of annotations:\n%s", got)
	}
	b.Annotations = nil
	got, err = bundle.Canonical(b)
	must(t, err)
	if !strings.Contains(string(got), "metadata:\n  name: v1-36-4\n") {
		t.Errorf("annotations out of nowhere:\n%s", got)
	}
}

// TestLongTextIsFolded compares with what upstream's tools sign.
func TestLongTextIsFolded(t *testing.T) {
	t.Parallel()
	key := newPair(t)
	b := parse(t, published)
	b.Spec.Packages[0].Source.Versions[0].Name = strings.TrimSpace(strings.Repeat("word ", 30))
	got, err := bundle.Canonical(b)
	must(t, err)
	folded := "        name: " + strings.TrimSpace(strings.Repeat("word ", 14)) + "\n          " + strings.TrimSpace(strings.Repeat("word ", 15)) + "\n          word\n"
	if !strings.Contains(string(got), folded) {
		t.Errorf("the text is not folded at 80 columns:\n%s", got)
	}
	// An earlier Drover signed it on one line.
	b.Annotations[packagesv1.SignatureAnnotation] = key.sign(strings.ReplaceAll(string(got), folded, "        name: "+b.Spec.Packages[0].Source.Versions[0].Name+"\n"))
	if err := bundle.Verify(b, keys(t, key)); err != nil {
		t.Errorf("signed without folding: %v", err)
	}
}

func TestOpenSSLSignatureIsAccepted(t *testing.T) {
	t.Parallel()
	key, other := newPair(t), newPair(t)
	b := signedBundle(t, key)
	if err := bundle.Verify(b, keys(t, key)); err != nil {
		t.Errorf("with its key: %v", err)
	}
	by, err := bundle.SignedBy(b, keys(t, other, key))
	if err != nil || by.Name != "b" {
		t.Errorf("with its key beside another: signed by %q, %v", by.Name, err)
	}
}

func TestChangedBundleFailsVerification(t *testing.T) {
	t.Parallel()
	key, other := newPair(t), newPair(t)
	version := func(b *packagesv1.PackageBundle) *packagesv1.SourceVersion {
		return &b.Spec.Packages[0].Source.Versions[0]
	}
	annotate := func(key, value string) func(*packagesv1.PackageBundle) {
		return func(b *packagesv1.PackageBundle) { b.Annotations[key] = value }
	}
	invalid := "The signature is invalid for the configured public key: " + keys(t, key).String()
	tests := map[string]struct {
		change func(*packagesv1.PackageBundle)
		want   string
	}{
		"name":                   {func(b *packagesv1.PackageBundle) { b.Name = "v1-36-5" }, invalid},
		"namespace":              {func(b *packagesv1.PackageBundle) { b.Namespace = "default" }, invalid},
		"name of a package":      {func(b *packagesv1.PackageBundle) { b.Spec.Packages[1].Name = "bass" }, invalid},
		"workloadonly":           {func(b *packagesv1.PackageBundle) { b.Spec.Packages[0].WorkloadOnly = false }, invalid},
		"name of a version":      {func(b *packagesv1.PackageBundle) { version(b).Name = "1.1" }, invalid},
		"digest of a chart":      {func(b *packagesv1.PackageBundle) { version(b).Digest = digest("x") }, invalid},
		"digest of an image":     {func(b *packagesv1.PackageBundle) { version(b).Images[0].Digest = digest("x") }, invalid},
		"repository of an image": {func(b *packagesv1.PackageBundle) { version(b).Images[0].Repository = "x" }, invalid},
		"schema":                 {func(b *packagesv1.PackageBundle) { version(b).Schema = "" }, invalid},
		"dependencies":           {func(b *packagesv1.PackageBundle) { version(b).Dependencies = nil }, invalid},
		"a package more": {func(b *packagesv1.PackageBundle) {
			b.Spec.Packages = append(b.Spec.Packages, packagesv1.BundlePackage{Name: "more"})
		}, invalid},
		"a package less":  {func(b *packagesv1.PackageBundle) { b.Spec.Packages = b.Spec.Packages[:1] }, invalid},
		"other excludes":  {annotate(packagesv1.ExcludesAnnotation, bundle.EncodeExcludes([]string{".spec"})), invalid},
		"excludes gone":   {func(b *packagesv1.PackageBundle) { delete(b.Annotations, packagesv1.ExcludesAnnotation) }, invalid},
		"includes more":   {annotate(packagesv1.IncludesAnnotation, "LmE="), invalid},
		"another's sig":   {annotate(packagesv1.SignatureAnnotation, other.sign(signed)), invalid},
		"sig cut short":   {func(b *packagesv1.PackageBundle) { b.Annotations[packagesv1.SignatureAnnotation] = "MEUC" }, invalid},
		"sig of no form":  {annotate(packagesv1.SignatureAnnotation, "!?"), "signature in metadata isn't base64 encoded"},
		"no sig":          {func(b *packagesv1.PackageBundle) { delete(b.Annotations, packagesv1.SignatureAnnotation) }, "Missing signature"},
		"no annotations":  {func(b *packagesv1.PackageBundle) { b.Annotations = nil }, "Missing signature"},
		"excludes bad":    {annotate(packagesv1.ExcludesAnnotation, "%"), "invalid selector(s) provided"},
		"excludes a call": {annotate(packagesv1.ExcludesAnnotation, bundle.EncodeExcludes([]string{"env"})), "invalid selector(s) provided"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := signedBundle(t, key)
			tt.change(b)
			if err := bundle.Verify(b, keys(t, key)); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestWrongKeyIsNamed(t *testing.T) {
	t.Parallel()
	key, other := newPair(t), newPair(t)
	err := bundle.Verify(signedBundle(t, key), keys(t, other))
	block, _ := pem.Decode(other.public)
	want := "The signature is invalid for the configured public key: " + base64.StdEncoding.EncodeToString(block.Bytes)
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
	if err := bundle.Verify(signedBundle(t, key), nil); err == nil {
		t.Error("without any key, a bundle was taken for good")
	}
}

func TestExcludedFieldsMayChange(t *testing.T) {
	t.Parallel()
	key := newPair(t)
	now := metav1.NewTime(time.Unix(1_000_000, 0))
	tests := map[string]func(*packagesv1.PackageBundle){
		"registry of each":   func(b *packagesv1.PackageBundle) { b.Spec.Packages[0].Source.Registry = "mirror.example.com" },
		"registry gone":      func(b *packagesv1.PackageBundle) { b.Spec.Packages[0].Source.Registry = "" },
		"registry new":       func(b *packagesv1.PackageBundle) { b.Spec.Packages[1].Source.Registry = "mirror.example.com" },
		"repository of each": func(b *packagesv1.PackageBundle) { b.Spec.Packages[0].Source.Repository = "mirror/hello" },
		"repository of last": func(b *packagesv1.PackageBundle) { b.Spec.Packages[1].Source.Repository = "mirror/base" },
		"controller version": func(b *packagesv1.PackageBundle) { b.Spec.MinVersion = "" },
		"status":             func(b *packagesv1.PackageBundle) { b.Status.State = packagesv1.BundleInvalid },
		"status.spec":        func(b *packagesv1.PackageBundle) { b.Status.Spec = b.Spec.DeepCopy() },
		"creationTimestamp":  func(b *packagesv1.PackageBundle) { b.CreationTimestamp = now },
		"generation":         func(b *packagesv1.PackageBundle) { b.Generation = 7 },
		"managedFields":      func(b *packagesv1.PackageBundle) { b.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}} },
		"uid":                func(b *packagesv1.PackageBundle) { b.UID = "x" },
		"resourceVersion":    func(b *packagesv1.PackageBundle) { b.ResourceVersion = "12" },
		"annotation of ours": func(b *packagesv1.PackageBundle) { b.Annotations[packagesv1.DownloadedAnnotation] = "x" },
		"finalizer":          func(b *packagesv1.PackageBundle) { b.Finalizers = []string{"example.com/x"} },
		"owner":              func(b *packagesv1.PackageBundle) { b.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} },
		"label":              func(b *packagesv1.PackageBundle) { b.Labels = map[string]string{"a": "b"} },
		"being deleted": func(b *packagesv1.PackageBundle) {
			seconds := int64(0)
			b.DeletionTimestamp, b.DeletionGracePeriodSeconds, b.Finalizers = &now, &seconds, []string{"example.com/x"}
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := signedBundle(t, key)
			change(b)
			if err := bundle.Verify(b, keys(t, key)); err != nil {
				t.Error(err)
			}
			// Changes by a server must not matter either.
			text, err := json.Marshal(b)
			must(t, err)
			if err := bundle.Verify(parse(t, string(text)), keys(t, key)); err != nil {
				t.Errorf("after a round trip: %v", err)
			}
		})
	}
}

func TestSignedLabelsAreVerified(t *testing.T) {
	t.Parallel()
	key := newPair(t)
	b := parse(t, published)
	b.Labels = map[string]string{"team": "a"}
	b.Annotations[packagesv1.SignatureAnnotation] = key.sign(strings.Replace(signed, "  name: v1-36-4", "  labels:\n    team: a\n  name: v1-36-4", 1))
	b.Finalizers = []string{"example.com/x"}
	if err := bundle.Verify(b, keys(t, key)); err != nil {
		t.Errorf("as it was signed, and with a finalizer: %v", err)
	}
	b.Labels["team"] = "b"
	if err := bundle.Verify(b, keys(t, key)); err == nil {
		t.Error("the change of a signed label was not detected")
	}
}

func TestOpenSSLVerifiesOurSignature(t *testing.T) {
	t.Parallel()
	key := newPair(t)
	text, err := os.ReadFile(key.private)
	must(t, err)
	private, err := bundle.ParsePrivateKey(text)
	must(t, err)
	b := parse(t, published)
	must(t, bundle.Sign(b, private))
	if !key.verify(signed, b.Annotations[packagesv1.SignatureAnnotation]) {
		t.Error("openssl does not take the signature for good")
	}
	must(t, bundle.Verify(b, keys(t, key)))
}

func TestSignedBundleMatchesTheStoredObject(t *testing.T) {
	t.Parallel()
	key := newPair(t)
	text, err := os.ReadFile(key.private)
	must(t, err)
	private, err := bundle.ParsePrivateKey(text)
	must(t, err)
	b := &packagesv1.PackageBundle{ObjectMeta: metav1.ObjectMeta{Name: "v1-36-1"}, Spec: parse(t, published).Spec}
	must(t, bundle.Sign(b, private))
	if b.Namespace != packagesv1.Namespace {
		t.Errorf("the namespace is %q", b.Namespace)
	}
	written, err := bundle.Format(b)
	must(t, err)
	must(t, bundle.Verify(parse(t, string(written)), keys(t, key)))
}

func TestPublicKeysAreReadInEveryEncoding(t *testing.T) {
	t.Parallel()
	key := newPair(t)
	block, _ := pem.Decode(key.public)
	encoded := []byte(base64.StdEncoding.EncodeToString(block.Bytes))
	two := append(append([]byte{}, key.public...), newPair(t).public...)
	all, err := bundle.ParseKeys(map[string][]byte{"pem": key.public, "base64": encoded, "two": two})
	must(t, err)
	names := []string{}
	for _, k := range all {
		names = append(names, k.Name)
	}
	if diff := cmp.Diff([]string{"base64", "pem", "two", "two"}, names); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if all[0].String() != string(encoded) || all[1].String() != string(encoded) {
		t.Errorf("a key was not read as it is: %s", all)
	}
}

func TestInvalidKeysAreRejected(t *testing.T) {
	t.Parallel()
	key := newPair(t)
	private, err := os.ReadFile(key.private)
	must(t, err)
	another := key.openssl(key.openssl("", "genpkey", "-algorithm", "ed25519"), "pkey", "-pubout")
	tests := map[string]struct {
		text []byte
		want string
	}{
		"no base64":    {[]byte("?"), "unable to decode the public key (not base 64)"},
		"no key":       {[]byte("aGVsbG8="), "unable parse the public key (not PKIX)"},
		"a private":    {private, "not a PUBLIC KEY"},
		"another kind": {[]byte(another), "P-256"},
		"PEM cut off":  {key.public[:40], "not PKIX"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := bundle.ParseKeys(map[string][]byte{"mine": tt.text})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `"mine"`) {
				t.Errorf("got %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestOpenSSLPrivateKeysAreRead(t *testing.T) {
	t.Parallel()
	key := newPair(t)
	text, err := os.ReadFile(key.private)
	must(t, err)
	first, err := bundle.ParsePrivateKey(text)
	must(t, err)
	second, err := bundle.ParsePrivateKey([]byte(key.openssl("", "pkcs8", "-topk8", "-nocrypt", "-in", key.private)))
	must(t, err)
	if !first.Equal(second) {
		t.Error("the same key in two forms is not the same")
	}
	for name, bad := range map[string]string{
		"nothing":     "",
		"public":      string(key.public),
		"encrypted":   key.openssl("", "pkcs8", "-topk8", "-in", key.private, "-passout", "pass:sesame"),
		"other curve": key.openssl("", "ecparam", "-name", "secp384r1", "-genkey", "-noout"),
	} {
		if _, err := bundle.ParsePrivateKey([]byte(bad)); err == nil {
			t.Errorf("%s: taken for a key", name)
		}
	}
	public, err := x509.MarshalPKIXPublicKey(first.Public().(*ecdsa.PublicKey))
	must(t, err)
	if block, _ := pem.Decode(key.public); !cmp.Equal(block.Bytes, public) {
		t.Error("the public key is another one")
	}
}
