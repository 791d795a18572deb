package cache

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// age sets the last use of the entry to a number of days ago.
func age(t *testing.T, e Entry, days int) {
	t.Helper()
	used := time.Now().AddDate(0, 0, -days)
	if err := os.Chtimes(manifestFile(e.Binary()), used, used); err != nil {
		t.Fatal(err)
	}
}

func TestCreatePrunesUnusedEntries(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	made := map[string]Entry{}
	for _, key := range []string{"older", "old", "busy", "run", "recent"} {
		made[key] = mustCreate(t, c, Name("v1.2.3", key), fill("v1.2.3", key))
	}
	run(t, made["run"])
	age(t, mustCreate(t, c, Name("v1.2.2", "other"), fill("v1.2.2", "other")), 365)
	for key, days := range map[string]int{"older": 9, "old": 8, "busy": 7, "run": 6, "recent": 5} {
		age(t, made[key], days)
	}
	unlock, err := tryLock(c.lockFile(Name("v1.2.3", "busy")))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	mustCreate(t, c, Name("v1.2.3", "new"), fill("v1.2.3", "new"))
	want := []string{"v1.2.2-other", "v1.2.3-busy", "v1.2.3-new", "v1.2.3-recent", "v1.2.3-run"}
	if diff := cmp.Diff(want, directories(t, c)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// run runs the entry's binary until the test ends.
func run(t *testing.T, e Entry) {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.Binary(), program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := seal(e.Binary(), e.Manifest); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(e.Binary(), "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

func TestEntryUsedDuringPruneIsKept(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	made := mustCreate(t, c, "v1.2.3-a", fill("v1.2.3", "a"))
	age(t, made, 9)
	seen, _ := c.Get("v1.2.3-a")
	if err := seen.Touch(); err != nil {
		t.Fatal(err)
	}
	c.remove(seen)
	if diff := cmp.Diff([]string{"v1.2.3-a"}, directories(t, c)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	now, _ := c.Get("v1.2.3-a")
	c.remove(now)
	if left := directories(t, c); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}
