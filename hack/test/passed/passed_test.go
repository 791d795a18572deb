package passed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/hack/test/events"
)

// checkout writes files below a new directory and returns it.
func checkout(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func open(t *testing.T, root string) *Store {
	t.Helper()
	s, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// log is what the tests of a package in p/ have read.
const log = "# test log\ngetenv DROVER_INPUT\ngetenv PWD\nopen testdata/a\nstat ../b\nchdir testdata\nopen ../list\nopen /etc/passwd\nopen missing\n"

func files() map[string]string {
	return map[string]string{"p/testdata/a": "1", "b": "2", "p/list/c": "3", "p/other": "4"}
}

func TestFindIgnoresLocationAndTimes(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	first, second := checkout(t, files()), checkout(t, files())
	t.Setenv("DROVER_INPUT", first+"/x")
	result := events.Result{Package: "m/p", Closing: "ok  \tm/p\t1.5s", Took: time.Second}
	if err := open(t, first).Add("key", result, []byte(log), filepath.Join(first, "p")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DROVER_INPUT", second+"/x")
	if err := os.Chtimes(filepath.Join(second, "b"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	got, ok := open(t, second).Find("key")
	want := events.Result{Package: "m/p", Closing: "ok  \tm/p\t(cached)", Took: time.Second, Cached: true}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("found %t (-want +got):\n%s", ok, diff)
	}
	if _, ok := open(t, second).Find("another"); ok {
		t.Error("found a package that was never tested")
	}
}

func TestFindNoticesChangedInputs(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(root string) error
		found  bool
	}{
		"nothing":                        {func(string) error { return nil }, true},
		"a file that was not read":       {write("p/other"), true},
		"a file that was opened":         {write("p/testdata/a"), false},
		"the bits of such a file":        {func(root string) error { return os.Chmod(filepath.Join(root, "b"), 0o700) }, false},
		"a file whose status was read":   {write("b"), false},
		"a file that is missing now":     {func(root string) error { return os.Remove(filepath.Join(root, "b")) }, false},
		"a file that was missing before": {write("p/testdata/missing"), false},
		"a file in an opened directory":  {write("p/list/c"), false},
		"a new file in that directory":   {write("p/list/d"), false},
		"a variable":                     {setenv("DROVER_INPUT"), false},
		"a variable with a directory":    {setenv("PWD"), true},
		"a broken entry":                 {breakEntry, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("DROVER_INPUT", "value")
			t.Setenv("PWD", "here")
			root := checkout(t, files())
			s := open(t, root)
			if err := s.Add("key", events.Result{Package: "m/p"}, []byte(log), filepath.Join(root, "p")); err != nil {
				t.Fatal(err)
			}
			if err := tt.change(root); err != nil {
				t.Fatal(err)
			}
			if _, ok := s.Find("key"); ok != tt.found {
				t.Errorf("found %t, want %t", ok, tt.found)
			}
		})
	}
}

// write returns a function that changes a file.
func write(path string) func(root string) error {
	return func(root string) error {
		return os.WriteFile(filepath.Join(root, path), []byte(strings.Repeat("x", 9)), 0o600)
	}
}

// setenv returns a function that changes a variable. The test restores it.
func setenv(name string) func(string) error {
	return func(string) error { return os.Setenv(name, "other") }
}

func breakEntry(string) error {
	return os.WriteFile(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "drover", "passed", "key.json"), []byte("{"), 0o600)
}

func TestOpenEvictsUnusedEntries(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root := checkout(t, nil)
	s := open(t, root)
	for _, key := range []string{"old", "new", "found"} {
		if err := s.Add(key, events.Result{Package: "m/p"}, nil, root); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"old", "found"} {
		if err := os.Chtimes(s.path(key), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := s.Find("found"); !ok {
		t.Fatal("an old entry is not found before it is evicted")
	}
	s = open(t, root)
	for key, want := range map[string]bool{"old": false, "new": true, "found": true} {
		if _, ok := s.Find(key); ok != want {
			t.Errorf("%s: found %t, want %t", key, ok, want)
		}
	}
}
