package manager

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestUnsentSnapshotsOfKilledManagersAreRemoved(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "unsent-snapshots")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"old": 25 * time.Hour, "new": time.Hour} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if got := (Options{ChartCache: filepath.Join(home, "charts")}).temporarySnapshots(); got != dir {
		t.Fatalf("got %q", got)
	}
	if got := (Options{ChartCache: "/dev/null/drover/charts"}).temporarySnapshots(); got != "" {
		t.Errorf("a directory that can't be used: %q", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "new" {
		t.Errorf("left %v, %v", left, err)
	}
}
