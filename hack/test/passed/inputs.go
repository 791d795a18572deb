package passed

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Inputs maps what tests have read to digests: "open PATH" and "stat PATH", relative to the root of
// the checkout, and "getenv NAME".
type Inputs map[string]string

// observe returns the inputs in a log of the testing package, with their present digests. Like the
// go command, it ignores files outside of root.
func observe(log []byte, root, dir string) Inputs {
	out := Inputs{}
	for line := range strings.Lines(string(log)) {
		verb, name, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch verb {
		case "chdir":
			dir = within(dir, name)
		case "open", "stat":
			if path, err := filepath.Rel(root, within(dir, name)); err == nil && filepath.IsLocal(path) {
				out[verb+" "+path] = ""
			}
		case "getenv":
			if !slices.Contains(directories(), name) {
				out[verb+" "+name] = ""
			}
		}
	}
	for input := range out {
		out[input] = digest(root, input)
	}
	return out
}

// directories are variables that differ for each run and each package.
func directories() []string { return []string{"PWD", "OLDPWD", "TMPDIR"} }

// within resolves a path relative to a directory.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// unchanged reports whether the inputs have the same digests in the checkout at root.
func (i Inputs) unchanged(root string) bool {
	for input, want := range i {
		if digest(root, input) != want {
			return false
		}
	}
	return true
}

func digest(root, input string) string {
	verb, name, _ := strings.Cut(input, " ")
	if verb == "getenv" {
		// Checkouts differ only in their location.
		return sum(strings.ReplaceAll(os.Getenv(name), root, "ROOT"))
	}
	return digestFile(filepath.Join(root, name), verb == "open")
}

// digestFile returns the digest of a file's content and of whether it can be executed, or, for the
// directories that tests open, of what they contain, without subdirectories.
func digestFile(path string, list bool) string {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "absent"
	case info.IsDir() && list:
		return digestDir(path)
	case !info.Mode().IsRegular():
		return info.Mode().Type().String()
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "unreadable"
	}
	return sum((info.Mode().Perm() & 0o100).String(), string(data))
}

func digestDir(path string) string {
	entries, err := os.ReadDir(path)
	if err != nil {
		return "unreadable"
	}
	var all strings.Builder
	for _, e := range entries {
		all.WriteString(e.Name() + "\x00" + digestFile(filepath.Join(path, e.Name()), false) + "\x00")
	}
	return sum(all.String())
}

func sum(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = h.Write([]byte(p)) // a hash never fails
		_, _ = h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}
