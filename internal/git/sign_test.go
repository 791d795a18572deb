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
			remote.Credentials.SigningKey, remote.Credentials.SigningPassphrase = private, passphrase
			mustUpdate(t, open(t, remote, Options{}), set(map[string]string{"a": "a"}))
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
	remote.Credentials.SigningKey = private.Bytes()
	r := open(t, remote, Options{})
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
	for name, tt := range map[string]struct {
		c    Credentials
		says string
	}{
		"nonsense":           {Credentials{SigningKey: []byte("nonsense")}, "reading signing key"},
		"armored nonsense":   {Credentials{SigningKey: []byte("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nAAAA\n-----END PGP PRIVATE KEY BLOCK-----\n")}, "reading signing key"},
		"wrong passphrase":   {Credentials{SigningKey: private, SigningPassphrase: "open barley"}, "reading signing key"},
		"no passphrase":      {Credentials{SigningKey: private}, "reading signing key"},
		"a passphrase alone": {Credentials{SigningPassphrase: "open sesame"}, "requires a signing key"},
		"locked OpenPGP key": {Credentials{SigningKey: lockedPGPKey(t, "open sesame")}, "using signing key"},
		"OpenPGP passphrase": {Credentials{SigningKey: lockedPGPKey(t, "open sesame"), SigningPassphrase: "open barley"}, "decrypting signing key"},
	} {
		remote := Remote{URL: "https://example.com/a", Branch: "main", Credentials: tt.c}
		err := remote.Validate()
		if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "barley") {
			t.Errorf("%s: error %v, want %q", name, err, tt.says)
		}
		if _, err := New(remote, Options{}); err == nil {
			t.Errorf("%s: a repository can be opened", name)
		}
	}
	unlocked := Credentials{SigningKey: lockedPGPKey(t, "open sesame"), SigningPassphrase: "open sesame"}
	if err := unlocked.CheckSigning(); err != nil {
		t.Errorf("the right passphrase: %v", err)
	}
}

// lockedPGPKey returns an armored private key that a passphrase encrypts.
func lockedPGPKey(t *testing.T, passphrase string) []byte {
	t.Helper()
	entity, err := openpgp.NewEntity("Fleet Bot", "", "bot@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := entity.EncryptPrivateKeys([]byte(passphrase), nil); err != nil {
		t.Fatal(err)
	}
	var private bytes.Buffer
	w, err := armor.Encode(&private, openpgp.PrivateKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := entity.SerializePrivateWithoutSigning(w, nil); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	return private.Bytes()
}
