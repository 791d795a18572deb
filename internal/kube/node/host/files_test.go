package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func empty() collector {
	return collector{files: Files{regular: map[string]fs.FileInfo{}, links: map[string]string{}}}
}

func put(t *testing.T, path, content string, mode fs.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func paths(f Files) []string {
	var out []string
	for _, file := range f.Sorted() {
		out = append(out, strings.TrimSuffix(file.Path+" -> "+file.Target, " -> "))
	}
	return out
}

func TestLinksAreFollowedToTheirFile(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "lib", "real.so.1"), "x", 0o644)
	for link, target := range map[string]string{"lib/real.so": "real.so.1", "alias": filepath.Join(dir, "lib/real.so"), "loop": "loop", "broken": "missing"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	c := empty()
	for name, want := range map[string]bool{"alias": true, "loop": false, "broken": false, "missing": false, "lib": false} {
		if got := c.path(filepath.Join(dir, name)); got != want {
			t.Errorf("%s is found: %t", name, got)
		}
	}
	found := paths(c.files)
	for _, want := range []string{filepath.Join(dir, "alias") + " -> " + filepath.Join(dir, "lib/real.so"), filepath.Join(dir, "lib/real.so") + " -> real.so.1", filepath.Join(dir, "lib/real.so.1")} {
		if !strings.Contains(strings.Join(found, "\n")+"\n", want+"\n") {
			t.Errorf("%q is not in %q", want, found)
		}
	}
	if c.err != nil {
		t.Error(c.err)
	}
}

func TestScriptsNeedTheirInterpreter(t *testing.T) {
	dir := t.TempDir()
	interpreter := put(t, filepath.Join(dir, "interpreter"), "data", 0o755)
	script := put(t, filepath.Join(dir, "script"), "#! "+interpreter+" -e\nexit\n", 0o755)
	c := empty()
	if !c.path(script) || c.err != nil {
		t.Fatalf("error %v", c.err)
	}
	if diff := cmp.Diff([]string{interpreter, script}, paths(c.files)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestBrokenProgramsAreReported(t *testing.T) {
	broken := put(t, filepath.Join(t.TempDir(), "broken"), "\x7fELF but no more", 0o755)
	c := empty()
	c.path(broken)
	if c.err == nil || !strings.Contains(c.err.Error(), broken) {
		t.Errorf("error %v does not name the file", c.err)
	}
}

func TestPackagesOfPrograms(t *testing.T) {
	for _, tt := range []struct{ programs, want []string }{
		{nil, nil}, {[]string{"curl"}, []string{"curl"}}, {[]string{"ss", "ip", "nft"}, []string{"iproute2", "nftables"}}, {[]string{"ip6tables", "iptables"}, []string{"iptables"}},
	} {
		if diff := cmp.Diff(tt.want, packagesOf(tt.programs)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.programs, diff)
		}
	}
	err := &MissingError{Programs: []string{"nft", "curl"}, Packages: []string{"curl", "nftables"}}
	if want := `this host lacks nft, curl: install them, on Debian and Ubuntu with "apt-get install curl nftables"`; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestDirectoriesComeBeforeTheirFiles(t *testing.T) {
	f := Files{regular: map[string]fs.FileInfo{"/usr/lib/a/b": nil, "/etc/x": nil}, links: map[string]string{"/usr/bin/c": "d"}}
	if diff := cmp.Diff([]string{"/etc", "/usr", "/usr/bin", "/usr/lib", "/usr/lib/a"}, f.Directories()); diff != "" {
		t.Errorf("directories (-want +got):\n%s", diff)
	}
	if got := (Files{}).Directories(); len(got) != 0 {
		t.Errorf("directories %v of nothing", got)
	}
}

func TestKeyChangesWithTheFiles(t *testing.T) {
	file := put(t, filepath.Join(t.TempDir(), "a"), "x", 0o644)
	of := func() string {
		t.Helper()
		c := empty()
		if !c.path(file) {
			t.Fatal("the file is not found")
		}
		return c.files.Key()
	}
	before := of()
	if before != of() {
		t.Error("the key changes by itself")
	}
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	if of() == before {
		t.Error("another mode has the same key")
	}
	if (Files{links: map[string]string{"/a": "b"}}).Key() == (Files{links: map[string]string{"/a": "c"}}).Key() {
		t.Error("another target has the same key")
	}
}

func TestCopiesHaveTheirMode(t *testing.T) {
	dir := t.TempDir()
	from, to := put(t, filepath.Join(dir, "from"), "x", 0o600), filepath.Join(dir, "to")
	if err := CopyFile(from, to, fs.ModeSetuid|0o755); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode() != fs.ModeSetuid|0o755 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	if err := CopyFile(from, to, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v for a file that exists", err)
	}
	if err := CopyFile(filepath.Join(dir, "missing"), filepath.Join(dir, "new"), 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v for a file that is missing", err)
	}
}
