package release

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/registry/bundle"
)

const archive = "drover_v1.2.3_linux_amd64.tar.gz"

func newKey(t *testing.T, name string) (*ecdsa.PrivateKey, bundle.Keys) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := bundle.ParseKeys(map[string][]byte{name: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})})
	if err != nil {
		t.Fatal(err)
	}
	return private, keys
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// newRelease signs a release with one archive and its SBOM.
func newRelease(t *testing.T, source Source, signer *ecdsa.PrivateKey) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, archive, "programs of "+source.Version)
	put(t, dir, archive+".spdx.json", "{}")
	if err := Sign(dir, []string{archive, archive + ".spdx.json"}, source, signer); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestVerifyReportsSourceOfEveryFile(t *testing.T) {
	private, keys := newKey(t, "release.pub")
	source := Source{Version: "v1.2.3", Commit: strings.Repeat("ab", 20), Go: "go1.26.0"}
	dir := newRelease(t, source, private)
	for _, name := range []string{archive, archive + ".spdx.json"} {
		got, err := Verify(filepath.Join(dir, name), keys)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := Sum(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Verified{Checksum: sum, Key: "release.pub", Source: source}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := Verify(filepath.Join(dir, Provenance), keys); err != nil {
		t.Error(err)
	}
}

func TestVerifyRejectsTamperedReleases(t *testing.T) {
	private, keys := newKey(t, "release.pub")
	stranger, _ := newKey(t, "stranger.pub")
	source := Source{Version: "v1.2.3", Commit: "abc", Go: "go1.26.0"}
	older := newRelease(t, Source{Version: "v1.2.2", Commit: "aaa", Go: "go1.26.0"}, private)
	tests := []struct {
		name   string
		tamper func(dir string)
		want   string
	}{
		{"archive", func(dir string) { put(t, dir, archive, "malware") }, "download it again"},
		{"checksums", func(dir string) {
			put(t, dir, archive, "malware")
			if err := WriteChecksums(dir, []string{archive}); err != nil {
				t.Fatal(err)
			}
		}, "not signed with a trusted key"},
		{"signed by a stranger", func(dir string) {
			put(t, dir, archive, "malware")
			if err := Sign(dir, []string{archive}, source, stranger); err != nil {
				t.Fatal(err)
			}
		}, "not signed with a trusted key"},
		{"older provenance", func(dir string) { put(t, dir, Provenance, get(t, older, Provenance)) }, "does not cover"},
		{"provenance of a stranger", func(dir string) {
			sum, err := Sum(filepath.Join(dir, archive))
			if err != nil {
				t.Fatal(err)
			}
			text, err := signProvenance(source, []Checksum{sum}, stranger)
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, Provenance, string(text))
		}, "not signed with a trusted key"},
		{"payload of another type", func(dir string) {
			var e envelope
			if err := json.Unmarshal([]byte(get(t, dir, Provenance)), &e); err != nil {
				t.Fatal(err)
			}
			e.PayloadType = "text/plain"
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, Provenance, string(text))
		}, "not signed with a trusted key"},
		{"garbage as provenance", func(dir string) { put(t, dir, Provenance, "\x00") }, "not an envelope"},
		{"garbage as signature", func(dir string) { put(t, dir, Signature, "%") }, "not base64"},
		{"a huge signature", func(dir string) { put(t, dir, Signature, strings.Repeat("A", maxDescription+1)) }, "larger than"},
		{"no signature", func(dir string) { os.Remove(filepath.Join(dir, Signature)) }, "Try: download"},
		{"no provenance", func(dir string) { os.Remove(filepath.Join(dir, Provenance)) }, "Try: download"},
		{"no checksums", func(dir string) { os.Remove(filepath.Join(dir, Checksums)) }, "Try: download"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := newRelease(t, source, private)
			tt.tamper(dir)
			_, err := Verify(filepath.Join(dir, archive), keys)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Verify: got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestVerifyRejectsFilesOutsideTheRelease(t *testing.T) {
	private, keys := newKey(t, "release.pub")
	dir := newRelease(t, Source{Version: "v1.2.3"}, private)
	put(t, dir, "renamed.tar.gz", get(t, dir, archive))
	if _, err := Verify(filepath.Join(dir, "renamed.tar.gz"), keys); err == nil || !strings.Contains(err.Error(), "original name") {
		t.Errorf("Verify: %v", err)
	}
}

func TestChecksumsRoundTrip(t *testing.T) {
	one, two := strings.Repeat("1a", 32), strings.Repeat("2b", 32)
	text := formatChecksums([]Checksum{{"b", two}, {"a", one}})
	if want := one + "  a\n" + two + "  b\n"; string(text) != want {
		t.Errorf("formatted as %q, want %q", text, want)
	}
	got, err := parseChecksums(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Checksum{{"a", one}, {"b", two}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseChecksumsRejectsGarbage(t *testing.T) {
	sum := strings.Repeat("1a", 32)
	for _, text := range []string{"", "x", sum, sum + " a", sum + "  ", sum + "  ../a", sum + "  a\n" + sum + "  a", sum[:62] + "  a", sum + "zz  a", strings.Repeat("a", maxDescription)} {
		if got, err := parseChecksums(text); err == nil {
			t.Errorf("parsed %.80q as %v", text, got)
		}
	}
}

// FuzzVerifyProvenance feeds envelopes of strangers; none may be accepted.
func FuzzVerifyProvenance(f *testing.F) {
	f.Add([]byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":"MAA="}]}`))
	f.Add([]byte(`{"payload":"` + base64.StdEncoding.EncodeToString([]byte(`{"subject":[{"digest":null}]}`)) + `"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, keys := newKey(t, "release.pub")
		if source, err := verifyProvenance(text, Checksum{}, keys); err == nil {
			t.Errorf("accepted %+v", source)
		}
	})
}
