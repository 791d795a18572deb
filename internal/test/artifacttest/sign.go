package artifacttest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// simpleSigning is the media type of cosign's payload.
const simpleSigning types.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"

// sigstoreBundle is the media type of signatures that refer to their subject.
const sigstoreBundle types.MediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// PGPKey signs provenance files.
type PGPKey struct{ entity *openpgp.Entity }

// NewPGPKey generates a key.
func NewPGPKey(t testing.TB) *PGPKey {
	t.Helper()
	entity, err := openpgp.NewEntity("Publisher", "", "publisher@example.com", nil)
	must(t, err)
	return &PGPKey{entity: entity}
}

// Keyring returns the public key as gpg --export writes it.
func (k *PGPKey) Keyring(t testing.TB) []byte {
	t.Helper()
	var ring bytes.Buffer
	must(t, k.entity.Serialize(&ring))
	return ring.Bytes()
}

// Provenance returns the provenance file of a chart archive.
func (k *PGPKey) Provenance(t testing.TB, name, version string, archive []byte) []byte {
	t.Helper()
	var signed bytes.Buffer
	text, err := clearsign.Encode(&signed, k.entity.PrivateKey, nil)
	must(t, err)
	_, err = fmt.Fprintf(text, "%s\n...\nfiles:\n  %s: sha256:%x\n", chartYAML(name, version), ArchiveName(name, version), sha256.Sum256(archive))
	must(t, err)
	must(t, text.Close())
	return signed.Bytes()
}

// CosignKey signs packages in registries.
type CosignKey struct{ private crypto.Signer }

// NewCosignKey generates a key of a type: ecdsa, ed25519 or rsa.
func NewCosignKey(t testing.TB, kind string) *CosignKey {
	t.Helper()
	var private crypto.Signer
	var err error
	switch kind {
	case "ecdsa":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case "rsa":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		t.Fatalf("no kind of key %q", kind)
	}
	must(t, err)
	return &CosignKey{private: private}
}

// Public returns the public key in PEM, as cosign writes it.
func (k *CosignKey) Public(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.private.Public())
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// SignBase64 signs data as cosign does.
func (k *CosignKey) SignBase64(t testing.TB, message []byte) string {
	t.Helper()
	hash, signed := crypto.Hash(0), message
	if _, whole := k.private.(ed25519.PrivateKey); !whole {
		digest := sha256.Sum256(message)
		hash, signed = crypto.SHA256, digest[:]
	}
	signature, err := k.private.Sign(rand.Reader, signed, hash)
	must(t, err)
	return base64.StdEncoding.EncodeToString(signature)
}

// Sign stores a signature beside a package, as cosign does. The digest is that of the manifest, as
// returned by Push.
func (r *Registry) Sign(t testing.TB, key *CosignKey, packageName, digest string) {
	t.Helper()
	r.PutSignature(t, packageName, digest, SigningPayload(digest), key.SignBase64(t, SigningPayload(digest)))
}

// SigningPayload returns cosign's payload for a manifest.
func SigningPayload(digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":%q},`+
		`"type":"cosign container image signature"},"optional":null}`, digest)
}

// PutSignature stores an arbitrary payload and signature beside a package.
func (r *Registry) PutSignature(t testing.TB, packageName, digest string, payload []byte, signature string) {
	t.Helper()
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{
		Layer:       static.NewLayer(payload, simpleSigning),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": signature},
	})
	must(t, err)
	tag := r.Tag(t, packageName, strings.Replace(digest, ":", "-", 1)+".sig")
	must(t, remote.Write(tag, image, r.client(t)...))
}

// SigningStatement returns the statement that cosign 3 signs for a manifest.
func SigningStatement(digest string) string {
	return fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],`+
		`"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{}}`, strings.TrimPrefix(digest, "sha256:"))
}

// Attach signs a statement and stores it beside a package, as cosign 3 does.
func (r *Registry) Attach(t testing.TB, key *CosignKey, packageName, digest, statement string) {
	t.Helper()
	const kind = "application/vnd.in-toto+json"
	signed := fmt.Sprintf("DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement)
	bundle, err := json.Marshal(map[string]any{"mediaType": sigstoreBundle, "dsseEnvelope": map[string]any{
		"payloadType": kind, "payload": []byte(statement),
		"signatures": []any{map[string]any{"sig": key.SignBase64(t, []byte(signed))}},
	}})
	must(t, err)
	repository := r.Tag(t, packageName, "any").Context()
	subject, err := remote.Head(repository.Digest(digest), r.client(t)...)
	must(t, err)
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(bundle, sigstoreBundle))
	must(t, err)
	referring := mutate.Subject(image, *subject).(v1.Image)
	own, err := referring.Digest()
	must(t, err)
	must(t, remote.Write(repository.Digest(own.String()), referring, r.client(t)...))
}
