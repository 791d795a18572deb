package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeysOf(t *testing.T) {
	const list = "unsafe\t\t\nlib\ta/1\t\np [p.test]\ta/2\t\np.test\ta/3\tunsafe,lib,p [p.test]\n" +
		"q.test\ta/4\tunsafe,lib\nbroken.test\ta/5\tlib,gone\nprogram\ta/6\tlib\nan error of the go command\n"
	keys := keysOf(list, "plain")
	if len(keys) != 2 || keys["p"] == "" || keys["q"] == "" || keys["p"] == keys["q"] {
		t.Fatalf("got %v, want different keys for p and q only", keys)
	}
	for name, tt := range map[string]struct {
		from, to, setting string
		same              bool
	}{
		"compiled again with the same result": {"a/1", "b/1", "plain", true},
		"another dependency":                  {"lib\ta/1", "lib\ta/9", "plain", false},
		"another test":                        {"a/2", "a/9", "plain", false},
		"another setting":                     {"", "", "race", false},
	} {
		if got := keysOf(strings.Replace(list, tt.from, tt.to, 1), tt.setting)["p"]; (got == keys["p"]) != tt.same {
			t.Errorf("%s: the key is the same: %t, want %t", name, got == keys["p"], tt.same)
		}
	}
}

func TestStartsGoroutines(t *testing.T) {
	for name, tt := range map[string]struct {
		source string
		want   bool
	}{
		"plain code":             {"package p\n\nfunc f() { g() }\n", false},
		"a go statement":         {"package p\n\nfunc f() { if true { go f() } }\n", true},
		"a mutex":                {"package p\n\nimport \"sync\"\n\nvar mu sync.Mutex\n", true},
		"an atomic value":        {"package p\n\nimport \"sync/atomic\"\n\nvar n atomic.Int64\n", true},
		"a group":                {"package p\n\nimport \"golang.org/x/sync/errgroup\"\n\nvar g errgroup.Group\n", true},
		"a parallel test":        {"package p\n\nfunc TestX(t *testing.T) { t.Parallel() }\n", true},
		"the word in a comment":  {"package p\n\n// go func\nfunc f() { _ = \"go f()\" }\n", false},
		"what can't be compiled": {"package p\n\nfunc {\n", true},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte(tt.source), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := startsGoroutines(dir); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
	}
}

func TestCheckoutIdentifiesFiles(t *testing.T) {
	root := t.TempDir()
	if got := checkout(root); got != "" {
		t.Errorf("a directory without Git is %q, want nothing", got)
	}
	change := func(command string) string {
		t.Helper()
		if out, err := shell(root, command); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		return checkout(root)
	}
	first := change("git init -q && echo 1 > a && git add a && git -c user.name=n -c user.email=e commit -qm first")
	if first == "" || checkout(root) != first {
		t.Fatalf("an unchanged checkout is %q, then %q", first, checkout(root))
	}
	for _, command := range []string{"echo 2 > a", "echo 3 > b", "git add b && git -c user.name=n -c user.email=e commit -qam second"} {
		if got := change(command); got == first || got == "" {
			t.Errorf("after %q the checkout is %q, want another identity", command, got)
		}
	}
}

func shell(dir, command string) ([]byte, error) {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

func TestRunnerIdentifiesTheListOfRaces(t *testing.T) {
	root := t.TempDir()
	if _, err := runner(root); err == nil {
		t.Error("got no error without the list of data races")
	}
	file := filepath.Join(root, suppressions)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, text := range []string{"race:a", "race:b"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		id, err := runner(root)
		if err != nil || seen[id] {
			t.Errorf("got %q, %v: want another identity for another list", id, err)
		}
		seen[id] = true
	}
}
