package plane

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/base/pki"
)

// keyIn writes a new key to a file.
func keyIn(t *testing.T, file string) []byte {
	t.Helper()
	key, err := pki.NewKey()
	if err == nil {
		err = os.WriteFile(file, key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestSigningKeyIsKept(t *testing.T) {
	dir := t.TempDir()
	given, other, garbage, rsaKey := filepath.Join(dir, "given.key"), filepath.Join(dir, "other.key"), filepath.Join(dir, "garbage.key"), filepath.Join(dir, "rsa.key")
	key := keyIn(t, given)
	keyIn(t, other)
	if err := os.WriteFile(garbage, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(foreign)}
	if err := os.WriteFile(rsaKey, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	h := Home{Dir: filepath.Join(dir, "home")}
	if err := h.makeRest(); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{garbage: "--bundle-key: no PEM block", filepath.Join(dir, "none"): "no such file", rsaKey: "--bundle-key: reading public key"} {
		if err := h.checkBundleKey(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
	for _, step := range []func(string) error{h.checkBundleKey, h.ensureBundleKey, h.checkBundleKey} {
		if err := step(given); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(h.BundleKey()); err != nil || !bytes.Equal(got, key) {
		t.Errorf("%v: the home has another key than was given", err)
	}
	if err := h.checkBundleKey(other); err == nil || !strings.Contains(err.Error(), "with another key: choose") {
		t.Errorf("another key: %v", err)
	}
	if err := h.ensureBundleKey(""); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(h.BundleKey()); err != nil || !bytes.Equal(got, key) {
		t.Errorf("%v: the key has changed", err)
	}
}
