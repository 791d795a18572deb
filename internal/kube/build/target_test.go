package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// target is a module with one program that prints a variable.
func target(t *testing.T) Target {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":         "module example.com/hello\n\ngo 1.26\n",
		"hello/main.go":  "package main\n\nvar version string\n\nfunc main() { println(version) }\n",
		"hello/doc.text": "not a source\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Target{Label: "hello", Source: dir, Packages: []string{"./hello"}, Flags: []string{"-ldflags=-X main.version=v7"}}
}

func TestCompileNamesProgramsLikeTheirPackages(t *testing.T) {
	dir := t.TempDir()
	b := Builder{}
	if err := b.Compile(t.Context(), target(t), dir); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(dir, "hello")).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "v7" {
		t.Errorf("the program prints %q, %v", out, err)
	}
}

func TestCompileReportsGoErrors(t *testing.T) {
	tt := target(t)
	if err := os.WriteFile(filepath.Join(tt.Source, "hello", "main.go"), []byte("package main\n\nfunc main() { undefined() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := Builder{}.Compile(t.Context(), tt, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") || !strings.Contains(err.Error(), "compiling hello") {
		t.Errorf("got error %v, want one that contains %q and %q", err, "undefined: undefined", "compiling hello")
	}
}

func TestKeyChangesWithSourceAndFlags(t *testing.T) {
	b := Builder{}
	key := func(t *testing.T, tt Target) string {
		t.Helper()
		k, err := b.Key(t.Context(), []Target{tt})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	tt := target(t)
	first := key(t, tt)
	if again := key(t, tt); again != first {
		t.Errorf("keys of the same target: %s, then %s", first, again)
	}
	flagged := tt
	flagged.Flags = []string{"-ldflags=-X main.version=v8"}
	if key(t, flagged) == first {
		t.Error("another version has the same key")
	}
	if err := os.WriteFile(filepath.Join(tt.Source, "hello", "more.go"), []byte("package main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if key(t, tt) == first {
		t.Error("another source has the same key")
	}
}

func TestKeyDependsOnlyOnUsedPackages(t *testing.T) {
	b := Builder{}
	tt := target(t)
	tt.Crowded = true
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(tt.Source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("word/word.go", "package word\n\nimport _ \"embed\"\n\n//go:embed text\nvar Word string\n")
	write("word/text", "one")
	write("hello/main.go", "package main\n\nimport \"example.com/hello/word\"\n\nfunc main() { println(word.Word) }\n")
	write("other/main.go", "package main\n\nfunc main() {}\n")
	last := ""
	for _, step := range []struct {
		name, content string
		changes       bool
	}{
		{"hello/doc.text", "changed\n", true}, // the first key of all
		{"other/main.go", "package main\n\nfunc main() { println() }\n", false},
		{"hello/main_test.go", "package main\n", false},
		{"word/text", "two", true},
		{"word/more.go", "package word\n", true},
		{"go.mod", "module example.com/hello\n\ngo 1.26\n\n// a comment\n", false},
	} {
		write(step.name, step.content)
		key, err := b.Key(t.Context(), []Target{tt})
		if err != nil {
			t.Fatal(err)
		}
		if changed := key != last; changed != step.changes {
			t.Errorf("after a change of %s the key is another one: %t, want %t", step.name, changed, step.changes)
		}
		last = key
	}
}
