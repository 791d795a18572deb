// Package packagestest provides what the tests of the controllers of packages share: a management
// plane on an API server, a signer of bundles, recorded events and a status linter. Start with
// NewPlane.
package packagestest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// Signer signs bundles.
type Signer struct {
	Private *ecdsa.PrivateKey
	// Keys trusts the signer.
	Keys bundle.Keys
}

// NewSigner returns a signer with a new key.
func NewSigner(t testing.TB) *Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Must(t, err)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	Must(t, err)
	keys, err := bundle.ParseKeys(map[string][]byte{"test": []byte(base64.StdEncoding.EncodeToString(der))})
	Must(t, err)
	return &Signer{Private: key, Keys: keys}
}

// Sign signs a bundle and returns it.
func (s *Signer) Sign(t testing.TB, b *packagesv1.PackageBundle) *packagesv1.PackageBundle {
	t.Helper()
	Must(t, bundle.Sign(b, s.Private))
	return b
}

// Bundle returns an unsigned bundle.
func Bundle(name string, packages ...packagesv1.BundlePackage) *packagesv1.PackageBundle {
	return &packagesv1.PackageBundle{
		TypeMeta:   metav1.TypeMeta{APIVersion: packagesv1.GroupVersion.String(), Kind: "PackageBundle"},
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: name},
		Spec:       packagesv1.PackageBundleSpec{Packages: packages},
	}
}

// Package returns a package of a bundle with one version.
func Package(name, version, digest string, dependencies ...string) packagesv1.BundlePackage {
	return packagesv1.BundlePackage{Name: name, Source: packagesv1.BundlePackageSource{
		Repository: name, Versions: []packagesv1.SourceVersion{{Name: version, Digest: digest, Dependencies: dependencies}},
	}}
}

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
