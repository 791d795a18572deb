package guest

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDelegate uses plain files: the host of a test may support only cgroup v1.
func TestDelegate(t *testing.T) {
	dir := t.TempDir()
	if unified(dir) {
		t.Error("a directory without controllers is taken for a unified hierarchy")
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte("cpu memory\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !unified(dir) {
		t.Error("a unified hierarchy is not recognized")
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := delegate(dir); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"init.scope/cgroup.procs": "1", "cgroup.subtree_control": "+memory"} {
		if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", file, got, err, want)
		}
	}
}
