package plane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/base/filelock"
)

func newEncryptedHome(t *testing.T) (Home, *Encryption) {
	t.Helper()
	p := newPKI(t)
	e, err := p.home.ensureEncryption(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return p.home, e
}

func TestKeyIsKeptUntilRotated(t *testing.T) {
	h, first := newEncryptedHome(t)
	second, err := h.ensureEncryption(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.keys, second.keys); diff != "" {
		t.Errorf("keys changed (-first +second):\n%s", diff)
	}
	if info, err := os.Stat(h.encryptionFile()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v, %v; want mode 0600", info.Mode(), err)
	}
}

func TestInterruptedRotationIsResumed(t *testing.T) {
	h, e := newEncryptedHome(t)
	old := e.KeyName()
	if err := e.addKey(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	again, err := h.loadEncryption()
	if err != nil {
		t.Fatal(err)
	}
	if !again.Rotating() || again.KeyName() == old || again.keys[1].Name != old {
		t.Errorf("after a crash the keys are %v, want the new one before %s", again.keys, old)
	}
	if err := again.dropOldKeys(); err != nil {
		t.Fatal(err)
	}
	if done, err := h.loadEncryption(); err != nil || done.Rotating() || done.KeyName() == old {
		t.Errorf("after the rotation: %v, %v; want only the new key", done, err)
	}
}

func TestLostKeysAreNotReplaced(t *testing.T) {
	h, _ := newEncryptedHome(t)
	write(t, h.path("etcd", "member", "wal"), "data")
	if err := os.Remove(h.encryptionFile()); err != nil {
		t.Fatal(err)
	}
	_, err := h.ensureEncryption(time.Now())
	if err == nil || !strings.Contains(err.Error(), "put the file back") {
		t.Errorf("got error %v, want one that says what to do", err)
	}
	if _, err := os.Stat(h.encryptionFile()); !os.IsNotExist(err) {
		t.Error("a new key was made, though it cannot read the data")
	}
}

// Data that can't be examined, such as on a disk with errors, may exist.
func TestLostKeysAreNotReplacedIfDataMayExist(t *testing.T) {
	h, _ := newEncryptedHome(t)
	for _, path := range []string{h.encryptionFile(), h.path("etcd")} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("etcd", h.path("etcd")); err != nil { // Reading it fails with ELOOP.
		t.Fatal(err)
	}
	_, err := h.ensureEncryption(time.Now())
	if err == nil || !strings.Contains(err.Error(), "put the file back") {
		t.Errorf("got error %v, want one that says what to do", err)
	}
	if _, err := os.Stat(h.encryptionFile()); !os.IsNotExist(err) {
		t.Error("a new key was made, though it cannot read the data")
	}
}

func TestDamagedKeysAreRejected(t *testing.T) {
	for name, content := range map[string]string{
		"not YAML":     "\x00\x01",
		"unknown keys": "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresource: []\n",
		"no key":       "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: []\n",
	} {
		h, _ := newEncryptedHome(t)
		write(t, h.encryptionFile(), content)
		if _, err := h.ensureEncryption(time.Now()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// runningHome returns a home that appears to have a supervisor.
func runningHome(t *testing.T) (Home, *Encryption) {
	t.Helper()
	h, e := newEncryptedHome(t)
	if err := h.writeMeta("v1.36.0", time.Now()); err != nil {
		t.Fatal(err)
	}
	supervisor, err := h.lock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = supervisor.Close() })
	return h, e
}

func TestConcurrentRotationIsRejected(t *testing.T) {
	h, e := runningHome(t)
	first, err := filelock.Try(h.path("run", "encryption.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := RotateEncryption(t.Context(), h, nil); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("got error %v, want %v", err, filelock.ErrHeld)
	}
	again, err := h.loadEncryption()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e.keys, again.keys); diff != "" {
		t.Errorf("the second rotation changed the keys of the first (-want +got):\n%s", diff)
	}
}

func TestBackupWaitsForARotation(t *testing.T) {
	h, _ := runningHome(t)
	rotation, err := filelock.Try(h.path("run", "encryption.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer rotation.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Backup(ctx, h, filepath.Join(t.TempDir(), "backup")); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("got error %v, want %v", err, filelock.ErrHeld)
	}
}
