package atomicfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteReplacesContentAndMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, step := range []struct {
		content string
		mode    os.FileMode
	}{{"one", 0o644}, {"two", 0o600}} {
		if err := Write(path, []byte(step.content), step.mode); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil || string(data) != step.content {
			t.Errorf("content %q, %v; want %q", data, err, step.content)
		}
		if info, _ := os.Stat(path); info.Mode().Perm() != step.mode {
			t.Errorf("mode %v, want %v", info.Mode().Perm(), step.mode)
		}
	}
}

func TestFailedWriteKeepsTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.Mkdir(path, 0o700); err != nil { // a directory cannot be replaced by a file
		t.Fatal(err)
	}
	if err := Write(path, []byte("new"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	if err := Write(filepath.Join(dir, "no", "such", "dir"), nil, 0o600); err == nil {
		t.Error("got no error for a missing directory, want one")
	}
}

func TestTemporaryFilesOfKilledWritersAreRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, name := range []string{"file", ".file.123", ".file.", ".files.1", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(path); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != ".files.1 file other" {
		t.Errorf("left are %s", got)
	}
	if err := Sweep(filepath.Join(dir, "no", "such", "dir")); err != nil {
		t.Error(err)
	}
}
