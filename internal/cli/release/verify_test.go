package release

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/release"
)

// newRelease writes a signed release of one file and returns that file and the public key's.
func newRelease(t *testing.T) (file, key string) {
	t.Helper()
	dir := t.TempDir()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	file, key = filepath.Join(dir, "drover.tar.gz"), filepath.Join(dir, "release.pub")
	for name, text := range map[string][]byte{file: []byte("programs"), key: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source := release.Source{Version: "v1.2.3", Commit: "c0ffee", Go: "go1.26.0"}
	if err := release.Sign(dir, []string{"drover.tar.gz"}, source, private); err != nil {
		t.Fatal(err)
	}
	return file, key
}

func verify(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := NewCommand(&ui.IO{Out: &out, Err: &out})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return out.String(), err
}

func TestVerifyPrintsTheSource(t *testing.T) {
	file, key := newRelease(t)
	out, err := verify(t, file, "--key", key)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"VERIFIED", "drover.tar.gz", "v1.2.3", "c0ffee", key} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	out, err = verify(t, file, "--key", key, "-o", "json")
	if err != nil || !strings.Contains(out, `"commit": "c0ffee"`) || !strings.Contains(out, `"sha256": "`) {
		t.Errorf("as JSON (%v):\n%s", err, out)
	}
}

func TestVerifyRequiresKeyAndRejectsChanges(t *testing.T) {
	file, key := newRelease(t)
	if _, err := verify(t, file); err == nil || !strings.Contains(err.Error(), "--key is required") {
		t.Errorf("without a key: %v", err)
	}
	if err := os.WriteFile(file, []byte("malware"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := verify(t, file, "--key", key); err == nil || out != "" {
		t.Errorf("verified a changed file: %s", out)
	}
}
