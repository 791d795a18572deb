package artifact_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

func verification(provider string, keys ...[]byte) *artifact.Verification {
	v := &artifact.Verification{Provider: provider, Keys: map[string][]byte{}}
	for i, key := range keys {
		v.Keys["key-"+string(rune('a'+i))] = key
	}
	return v
}

func TestProvenance(t *testing.T) {
	trusted, other := artifacttest.NewPGPKey(t), artifacttest.NewPGPKey(t)
	ring := trusted.Keyring(t)
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	good := trusted.Provenance(t, "cni", "1.0.0", chart)
	for _, c := range []struct {
		name       string
		provenance []byte
		verify     *artifact.Verification
		fails      error
		says       string
	}{
		{name: "a key that is trusted", provenance: good, verify: verification("helm", ring)},
		{name: "one of several keys", provenance: good, verify: verification("helm", other.Keyring(t), ring)},
		{name: "another key", provenance: good, verify: verification("helm", other.Keyring(t)), fails: artifact.ErrUnverified, says: "key-a"},
		{name: "no provenance", verify: verification("helm", ring), fails: artifact.ErrUnverified, says: "no provenance"},
		{
			name: "of another archive", provenance: trusted.Provenance(t, "cni", "1.0.0", []byte("other")),
			verify: verification("helm", ring), fails: artifact.ErrUnverified, says: "another archive",
		},
		{
			name: "of another version", provenance: trusted.Provenance(t, "cni", "0.9.0", chart),
			verify: verification("helm", ring), fails: artifact.ErrUnverified, says: "for cni 0.9.0",
		},
		{
			name: "of another chart", provenance: trusted.Provenance(t, "csi", "1.0.0", chart),
			verify: verification("helm", ring), fails: artifact.ErrUnverified, says: "for csi",
		},
		{
			name: "changed after it was signed", provenance: []byte(strings.Replace(string(good), "apiVersion: v2", "apiVersion: v1", 1)),
			verify: verification("helm", ring), fails: artifact.ErrUnverified, says: "not signed by",
		},
		{name: "not signed at all", provenance: []byte("text"), verify: verification("helm", ring), fails: artifact.ErrUnverified, says: "file is not signed"},
		{name: "a keyring that is none", provenance: good, verify: verification("helm", []byte("text")), fails: artifact.ErrInvalid, says: "key-a"},
		{name: "no keys", provenance: good, verify: verification("helm"), fails: artifact.ErrInvalid, says: "requires public keys"},
		{name: "an unknown way", provenance: good, verify: verification("notary", ring), fails: artifact.ErrInvalid, says: "notary"},
	} {
		t.Run(c.name, func(t *testing.T) {
			repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
			repository.Publish("cni", "1.0.0", chart)
			if c.provenance != nil {
				repository.PutFile(artifacttest.ArchiveName("cni", "1.0.0")+".prov", c.provenance)
			}
			registry := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
			registry.Push(t, artifacttest.Package{Name: "cni", Version: "1.0.0", Archive: chart, Provenance: c.provenance})
			for _, url := range []string{repository.URL, registry.URL} {
				verifies(t, artifact.Ref{URL: url, Name: "cni", Version: "1.0.0", Verify: c.verify}, c.fails, c.says)
			}
		})
	}
}

// verifies fetches a cached package and expects success, or an error that contains says.
func verifies(t *testing.T, ref artifact.Ref, fails error, says string) {
	t.Helper()
	store := open(t)
	unverified := ref
	unverified.Verify = nil
	store.get(t, unverified)
	if fails == nil {
		store.get(t, ref)
		return
	}
	if err := store.fails(t, ref, fails); !strings.Contains(err.Error(), says) {
		t.Errorf("error %q does not contain %q", err, says)
	}
}

func TestCosign(t *testing.T) {
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	for _, kind := range []string{"ecdsa", "ed25519", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			trusted, other := artifacttest.NewCosignKey(t, kind), artifacttest.NewCosignKey(t, kind)
			registry := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
			digest := registry.Push(t, artifacttest.Package{Name: "cni", Version: "1.0.0", Archive: chart})
			ref := artifact.Ref{URL: registry.URL, Name: "cni", Version: "1.0.0", Verify: verification("cosign", trusted.Public(t))}
			verifies(t, ref, artifact.ErrUnverified, "no signature")
			registry.Sign(t, other, "cni", digest)
			verifies(t, ref, artifact.ErrUnverified, "key-a")
			registry.Sign(t, trusted, "cni", digest)
			verifies(t, ref, nil, "")
			ref.Verify = verification("cosign", other.Public(t), trusted.Public(t))
			verifies(t, ref, nil, "")
		})
	}
}

func TestCosignBundles(t *testing.T) {
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	for _, kind := range []string{"ecdsa", "ed25519", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			trusted, other := artifacttest.NewCosignKey(t, kind), artifacttest.NewCosignKey(t, kind)
			registry := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
			digest := registry.Push(t, artifacttest.Package{Name: "cni", Version: "1.0.0", Archive: chart})
			ref := artifact.Ref{URL: registry.URL, Name: "cni", Version: "1.0.0", Verify: verification("cosign", trusted.Public(t))}
			registry.Attach(t, other, "cni", digest, artifacttest.SigningStatement(digest))
			verifies(t, ref, artifact.ErrUnverified, "key-a")
			registry.Attach(t, trusted, "cni", digest, artifacttest.SigningStatement(strings.Repeat("0", 64)))
			verifies(t, ref, artifact.ErrUnverified, "no signature is for sha256:")
			attestation := strings.Replace(artifacttest.SigningStatement(digest), "cosign/sign/v1", "other", 1)
			registry.Attach(t, trusted, "cni", digest, attestation)
			verifies(t, ref, artifact.ErrUnverified, "no signature is for sha256:")
			registry.Attach(t, trusted, "cni", digest, artifacttest.SigningStatement(digest))
			verifies(t, ref, nil, "")
		})
	}
}

func TestCosignSignatureOfAnotherDigestIsRejected(t *testing.T) {
	key := artifacttest.NewCosignKey(t, "ecdsa")
	registry := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	older := registry.Push(t, artifacttest.Package{Name: "cni", Version: "0.9.0", Archive: artifacttest.Chart(t, "cni", "0.9.0", nil)})
	digest := registry.Push(t, artifacttest.Package{Name: "cni", Version: "1.0.0", Archive: artifacttest.Chart(t, "cni", "1.0.0", nil)})
	ref := artifact.Ref{URL: registry.URL, Name: "cni", Version: "1.0.0", Verify: verification("cosign", key.Public(t))}
	registry.PutSignature(t, "cni", digest, artifacttest.SigningPayload(older), key.SignBase64(t, artifacttest.SigningPayload(older)))
	verifies(t, ref, artifact.ErrUnverified, "no signature is for sha256:")
	registry.PutSignature(t, "cni", digest, artifacttest.SigningPayload(digest), base64.StdEncoding.EncodeToString([]byte("scribble")))
	verifies(t, ref, artifact.ErrUnverified, "none of 1 signatures")
	ref.Verify = verification("cosign", []byte("text"))
	verifies(t, ref, artifact.ErrInvalid, "PEM")
	ref.Verify = verification("cosign")
	verifies(t, ref, artifact.ErrInvalid, "requires public keys")
}

// TestOldSignedChartIsNotServedAsANewOne gives a signed chart the tag of a later version, and the
// name of another chart.
func TestOldSignedChartIsNotServedAsANewOne(t *testing.T) {
	key := artifacttest.NewCosignKey(t, "ecdsa")
	registry := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	old := artifacttest.Chart(t, "cni", "0.9.0", nil)
	for _, as := range []artifacttest.Package{
		{Name: "cni", Version: "1.0.0", Archive: old}, {Name: "csi", Version: "0.9.0", Archive: old}, {Name: "team/cni", Version: "0.9.0", Archive: old},
	} {
		registry.Sign(t, key, as.Name, registry.Push(t, as))
	}
	signed := verification("cosign", key.Public(t))
	verifies(t, artifact.Ref{URL: registry.URL, Name: "cni", Version: "1.0.0", Verify: signed}, artifact.ErrUnverified, "the signed chart is cni 0.9.0")
	verifies(t, artifact.Ref{URL: registry.URL, Name: "cni", Version: ">=1", Verify: signed}, artifact.ErrUnverified, "the signed chart is cni 0.9.0")
	verifies(t, artifact.Ref{URL: registry.URL, Name: "csi", Version: "0.9.0", Verify: signed}, artifact.ErrUnverified, "the signed chart is cni 0.9.0")
	verifies(t, artifact.Ref{URL: registry.URL, Name: "team/cni", Version: "v0.9.0", Verify: signed}, nil, "")
}

func TestCosignRequiresARegistry(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	repository.Publish("cni", "1.0.0", artifacttest.Chart(t, "cni", "1.0.0", nil))
	key := artifacttest.NewCosignKey(t, "ecdsa")
	verifies(t, artifact.Ref{URL: repository.URL, Name: "cni", Verify: verification("cosign", key.Public(t))}, artifact.ErrInvalid, "requires a registry")
}

func TestVerificationIsCached(t *testing.T) {
	trusted, other := artifacttest.NewPGPKey(t), artifacttest.NewPGPKey(t)
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	repository.Publish("cni", "1.0.0", chart)
	repository.PutFile(artifacttest.ArchiveName("cni", "1.0.0")+".prov", trusted.Provenance(t, "cni", "1.0.0", chart))
	store := open(t)
	ref := artifact.Ref{URL: repository.URL, Name: "cni", Version: "1.0.0", Verify: verification("helm", trusted.Keyring(t))}
	for range 3 {
		store.get(t, ref)
	}
	if n := repository.Count(".prov"); n != 1 {
		t.Errorf("%d requests for the provenance file", n)
	}
	ref.Verify = verification("helm", other.Keyring(t))
	store.fails(t, ref, artifact.ErrUnverified)
}
