package plane

import (
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/base/pki"
)

// makeBackup writes a small backup without a plane and returns its bytes and the identity that
// opens it.
func makeBackup(t *testing.T, change func(*Manifest, *[]source)) ([]byte, age.Identity) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	data, _ := makeSignedBackup(t, identity.Recipient(), change)
	return data, identity
}

// makeSignedBackup returns a backup for a recipient, and the CA of the plane that signed it.
func makeSignedBackup(t *testing.T, recipient age.Recipient, change func(*Manifest, *[]source)) ([]byte, *pki.Authority) {
	t.Helper()
	authority, err := pki.NewAuthority("plane", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	key, err := pki.ParseKey(authority.Key)
	if err != nil {
		t.Fatal(err)
	}
	p := newPKI(t)
	write(t, p.home.path("snap"), strings.Repeat("etcd", 10_000))
	write(t, p.home.path("encryption", "config.yaml"), "key")
	write(t, p.home.path("pki", "ca.crt"), "cert")
	if err := p.home.writeMeta("v1.36.3", time.Now()); err != nil {
		t.Fatal(err)
	}
	sources, err := p.home.backupSources(p.home.path("snap"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.home.describe(sources)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&m, &sources)
	}
	var out bytes.Buffer
	if err := encode(&out, m, contents{sources, key}, []age.Recipient{recipient}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), authority
}

func open(t *testing.T, data []byte, identity age.Identity, dir string, signers ...*x509.Certificate) error {
	t.Helper()
	r, err := unseal(bytes.NewReader(data), RestoreOptions{Path: "test.backup", Identities: []age.Identity{identity}})
	if err != nil {
		return err
	}
	_, err = unpack(r, dir, "v1.36.3", signers)
	return err
}

func TestBackupContainsIrreplaceableFiles(t *testing.T) {
	data, identity := makeBackup(t, nil)
	dir := t.TempDir()
	if err := open(t, data, identity, dir); err != nil {
		t.Fatal(err)
	}
	var got []string
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			got = append(got, rel)
		}
		return nil
	})
	if diff := cmp.Diff([]string{"encryption/config.yaml", "etcd.snapshot", "home.json", "pki/ca.crt"}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if bytes.Contains(data, []byte("cert")) {
		t.Error("the backup holds plain text")
	}
}

// TestForgedBackupIsRejected restores a backup that someone else encrypted for the same recipient,
// which is public.
func TestForgedBackupIsRejected(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	data, own := makeSignedBackup(t, identity.Recipient(), nil)
	if err := open(t, data, identity, t.TempDir(), own.Certs...); err != nil {
		t.Errorf("the plane's own backup: got error %v, want none", err)
	}
	forged, _ := makeSignedBackup(t, identity.Recipient(), nil)
	dir := t.TempDir()
	if err := open(t, forged, identity, dir, own.Certs...); !errors.Is(err, ErrForeignBackup) {
		t.Errorf("a backup of another plane: got error %v, want %v", err, ErrForeignBackup)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("a backup of another plane: got files %v, want none", left)
	}
	unsigned, _ := makeSignedBackup(t, identity.Recipient(), func(m *Manifest, _ *[]source) { m.Format = 1 })
	if err := open(t, unsigned, identity, t.TempDir(), own.Certs...); !errors.Is(err, ErrForeignBackup) {
		t.Errorf("a backup of a format without signatures: got error %v, want %v", err, ErrForeignBackup)
	}
}

func TestTruncatedBackupIsRejected(t *testing.T) {
	data, identity := makeBackup(t, nil)
	for n := 0; n < len(data); n += 1 + len(data)/200 {
		if open(t, data[:n], identity, t.TempDir()) == nil {
			t.Fatalf("%d of %d bytes are accepted", n, len(data))
		}
	}
}

func TestModifiedBackupIsRejected(t *testing.T) {
	data, identity := makeBackup(t, nil)
	for n := 0; n < len(data); n += 1 + len(data)/100 {
		damaged := bytes.Clone(data)
		damaged[n] ^= 0x20
		if open(t, damaged, identity, t.TempDir()) == nil {
			t.Fatalf("a change of byte %d is accepted", n)
		}
	}
}

func TestBackupRequiresItsKey(t *testing.T) {
	data, _ := makeBackup(t, nil)
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	if err := open(t, data, other, t.TempDir()); err == nil || !strings.Contains(err.Error(), "wrong passphrase or identity") {
		t.Errorf("got error %v, want one about the identity", err)
	}
}

func TestInvalidManifestsAreRejected(t *testing.T) {
	tests := map[string]struct {
		change  func(*Manifest, *[]source)
		want    string
		version bool
	}{
		"a later format":        {func(m *Manifest, _ *[]source) { m.Format = backupFormat + 1; m.Drover = "v9" }, "of Drover v9,", true},
		"a later home":          {func(m *Manifest, _ *[]source) { m.HomeFormat = 2 }, "restore it with that Drover", true},
		"a later Kubernetes":    {func(m *Manifest, _ *[]source) { m.Kubernetes = "v1.37.0" }, "can't go back", true},
		"a wrong checksum":      {func(m *Manifest, _ *[]source) { m.Files[1].SHA256 = "00" }, "checksum", false},
		"a path out of the way": {func(m *Manifest, s *[]source) { m.Files[1].Name = "../evil"; (*s)[1].name = "../evil" }, "not a file of a backup", false},
		"an absolute path":      {func(m *Manifest, s *[]source) { m.Files[1].Name = "/etc/x"; (*s)[1].name = "/etc/x" }, "not a file of a backup", false},
		"a file not listed":     {func(m *Manifest, s *[]source) { (*s)[1].name = "other" }, "where the manifest lists", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			data, identity := makeBackup(t, tt.change)
			err := open(t, data, identity, t.TempDir())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got error %v, want one with %q", err, tt.want)
			}
			var refused *VersionRefusedError
			if errors.As(err, &refused) != tt.version {
				t.Errorf("error is %T, version refused should be %v", err, tt.version)
			}
		})
	}
}

func TestInvalidBackupIsRejected(t *testing.T) {
	_, identity := makeBackup(t, nil)
	for _, garbage := range []string{"", "garbage", "age-encryption.org/v1\n", strings.Repeat("\x00", 4096)} {
		var not *NotABackupError
		if err := open(t, []byte(garbage), identity, t.TempDir()); !errors.As(err, &not) {
			t.Errorf("%q: error = %v, want a NotABackupError", garbage, err)
		}
	}
}

func TestFailedBackupLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "plane.backup")
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	m := Manifest{Files: []ManifestFile{{Name: "home.json", Size: 1}}}
	authority, err := pki.NewAuthority("plane", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	key, err := pki.ParseKey(authority.Key)
	if err != nil {
		t.Fatal(err)
	}
	err = writeBackup(path, m, contents{[]source{{"home.json", filepath.Join(dir, "gone")}}, key}, []age.Recipient{identity.Recipient()})
	if err == nil {
		t.Fatal("a missing file is no error")
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("got leftovers %v, want none", files)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := unpack(bytes.NewReader(data), t.TempDir(), "v1.36.3", nil); err == nil {
			_, err = io.Copy(io.Discard, bytes.NewReader(data))
			t.Errorf("garbage was taken for a backup (%v)", err)
		}
	})
}
