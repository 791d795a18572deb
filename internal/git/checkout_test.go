package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-dev/drover/internal/test/gittest"
)

func TestCheckoutHasCommittedAndUncommittedFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "sub", "a.yaml"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, dir, "init", "--initial-branch=main")
	write("first")
	gittest.Run(t, dir, "add", ".")
	gittest.Run(t, dir, "commit", "-m", "first")
	write("second")
	c, err := OpenCheckout(filepath.Join(dir, "sub"))
	if err != nil {
		t.Fatal(err)
	}
	committed, err := c.At("main")
	if err != nil {
		t.Fatal(err)
	}
	for want, files := range map[string]fs.FS{"first": committed, "second": c.Files()} {
		if data, err := fs.ReadFile(files, "sub/a.yaml"); err != nil || string(data) != want {
			t.Errorf("%q, %v, want %q", data, err, want)
		}
	}
	if _, err := c.At("none"); err == nil {
		t.Error("a revision that doesn't exist is found")
	}
}

func TestDirectoryOutsideOfACheckoutIsRejected(t *testing.T) {
	if _, err := OpenCheckout(t.TempDir()); !errors.Is(err, ErrNoCheckout) {
		t.Errorf("error = %v", err)
	}
	if _, err := OpenCheckout(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error = %v", err)
	}
}
