package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindTest(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"a/a_test.go": "package a\n\nfunc TestOne(t *testing.T) {}\n\nfunc TestBoth(t *testing.T) {}\n",
		"b/b_test.go": "package b\n\nfunc TestBoth(t *testing.T) {}\n",
		"b/b.go":      "package b\n\nfunc TestTwo(t *testing.T) {}\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ test, want, err string }{
		"one package has it":            {"TestOne", "a", ""},
		"a subtest":                     {"TestOne/case", "a", ""},
		"the start of a name":           {"TestOn", "", "not found"},
		"a function that is not a test": {"TestTwo", "", "not found"},
		"several packages have it":      {"TestBoth", "", "several packages"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findTest(root, c.test)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want an error with %q", err, c.err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestExactly(t *testing.T) {
	if got, want := exactly("TestA/b.c"), `^TestA$/^b\.c$`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
