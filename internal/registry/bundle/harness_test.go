package bundle_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// digest returns the digest of a text, so that tests need no long constants.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func parse(t testing.TB, text string) *packagesv1.PackageBundle {
	t.Helper()
	b, err := bundle.Parse([]byte(text))
	must(t, err)
	return b
}

// pair is an OpenSSL key.
type pair struct {
	t       testing.TB
	private string
	public  []byte
}

func newPair(t testing.TB) *pair {
	t.Helper()
	p := &pair{t: t, private: filepath.Join(t.TempDir(), "key.pem")}
	p.openssl("", "ecparam", "-name", "prime256v1", "-genkey", "-out", p.private)
	p.public = []byte(p.openssl("", "ec", "-in", p.private, "-pubout"))
	return p
}

// sign signs a text, in base64.
func (p *pair) sign(text string) string {
	p.t.Helper()
	return base64.StdEncoding.EncodeToString([]byte(p.openssl(text, "dgst", "-sha256", "-sign", p.private)))
}

// verify reports whether openssl accepts a signature of a text.
func (p *pair) verify(text, signature string) bool {
	p.t.Helper()
	dir := p.t.TempDir()
	der, err := base64.StdEncoding.DecodeString(signature)
	must(p.t, err)
	must(p.t, os.WriteFile(filepath.Join(dir, "sig"), der, 0o600))
	must(p.t, os.WriteFile(filepath.Join(dir, "pub"), p.public, 0o600))
	command := exec.CommandContext(p.t.Context(), "openssl", "dgst", "-sha256", "-verify", filepath.Join(dir, "pub"), "-signature", filepath.Join(dir, "sig"))
	command.Stdin = strings.NewReader(text)
	return command.Run() == nil
}

func (p *pair) openssl(input string, args ...string) string {
	p.t.Helper()
	command := exec.CommandContext(p.t.Context(), "openssl", args...)
	command.Stdin = strings.NewReader(input)
	var problem strings.Builder
	command.Stderr = &problem
	out, err := command.Output()
	if err != nil {
		p.t.Fatalf("openssl %s: %v: %s", args[0], err, problem.String())
	}
	return string(out)
}

func keys(t testing.TB, pairs ...*pair) bundle.Keys {
	t.Helper()
	texts := map[string][]byte{}
	for i, p := range pairs {
		texts[string(rune('a'+i))] = p.public
	}
	parsed, err := bundle.ParseKeys(texts)
	must(t, err)
	return parsed
}
