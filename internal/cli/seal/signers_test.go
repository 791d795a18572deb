package seal

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/base/pki"
)

func signerFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSignersComeFromACertificateOrAKubeconfig(t *testing.T) {
	authority, err := pki.NewAuthority("plane", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ca := authority.PEM()
	kubeconfig := fmt.Sprintf(`{"clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1", "certificate-authority-data": %q}}],
		"users": [{"name": "u", "user": {"token": "t"}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}`,
		base64.StdEncoding.EncodeToString(ca))
	for name, text := range map[string]string{"a certificate": string(ca), "a kubeconfig": kubeconfig} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadSigners(file)
		if err != nil || len(got) != 1 || !got[0].Equal(authority.Certs[0]) {
			t.Errorf("%s: %d certificates, error %v", name, len(got), err)
		}
	}
	if got, err := ReadSigners(""); got != nil || err != nil {
		t.Errorf("without a file: %v, %v", got, err)
	}
	if _, err := ReadSigners(signerFile(t, "hunter2")); err == nil {
		t.Error("a file of something else is accepted")
	}
}
