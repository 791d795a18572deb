package git

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/drover-dev/drover/internal/test/gittest"
)

func TestGitVerifiesSignaturesBySSHKeys(t *testing.T) {
	for kind, passphrase := range map[string]string{"ed25519": "open sesame", "ecdsa": "", "rsa": ""} {
		t.Run(kind, func(t *testing.T) {
			private, public := gittest.NewKey(t, kind, passphrase)
			_, repository, remote := overHTTPS(t)
			mustUpdate(t, open(t, remote, Options{SigningKey: private, SigningPassphrase: passphrase}), set(map[string]string{"a": "a"}))
			allowed := filepath.Join(t.TempDir(), "allowed")
			if err := os.WriteFile(allowed, append([]byte("bot@example.com "), public...), 0o600); err != nil {
				t.Fatal(err)
			}
			repository.Git("-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", gittest.Branch)
		})
	}
}

func TestSignaturesByOpenPGPKeysAreValid(t *testing.T) {
	entity, err := openpgp.NewEntity("Fleet Bot", "", "bot@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var private bytes.Buffer
	w, err := armor.Encode(&private, openpgp.PrivateKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := entity.SerializePrivate(w, nil); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	_, repository, remote := overHTTPS(t)
	r := open(t, remote, Options{SigningKey: private.Bytes()})
	mustUpdate(t, r, set(map[string]string{"a": "a"}))
	repository.Git("fsck", "--strict")
	tip, err := r.Tip(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	commit, err := object.GetCommit(tip.objects, tip.base)
	if err != nil {
		t.Fatal(err)
	}
	var public bytes.Buffer
	if w, err = armor.Encode(&public, openpgp.PublicKeyType, nil); err != nil {
		t.Fatal(err)
	}
	_ = entity.Serialize(w)
	_ = w.Close()
	if _, err := commit.Verify(public.String()); err != nil {
		t.Errorf("verifying: %v in %s", err, commit.PGPSignature)
	}
}

func TestSigningKeysAreCheckedBeforeAnythingElse(t *testing.T) {
	private, _ := gittest.NewKey(t, "ed25519", "open sesame")
	for name, o := range map[string]Options{
		"nonsense":         {SigningKey: []byte("nonsense")},
		"armored nonsense": {SigningKey: []byte("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nAAAA\n-----END PGP PRIVATE KEY BLOCK-----\n")},
		"wrong passphrase": {SigningKey: private, SigningPassphrase: "open barley"},
		"no passphrase":    {SigningKey: private},
	} {
		_, err := New(Remote{URL: "https://example.com/a", Branch: "main"}, o)
		if err == nil || !strings.Contains(err.Error(), "signing key") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
