// Command words rejects turns of phrase that read like a translation, in code, docs and scripts,
// lines of comments and prose that are too long, and exceptions from linters that never run. The
// rules are in rules.go, length.go and nolint.go.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run() error {
	files, err := tracked()
	if err != nil {
		return err
	}
	linters, err := enabledLinters(".golangci.yml")
	if err != nil {
		return err
	}
	found := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, f := range append(check(file, string(data)), uselessExceptions(string(data), linters)...) {
			found++
			fmt.Printf("%s:%d: %q: %s\n", file, f.line, f.text, f.instead)
		}
	}
	if found > 0 {
		return fmt.Errorf("%d lines violate the rules in hack/words", found)
	}
	return nil
}

// tracked lists the files that the rules apply to.
func tracked() ([]string, error) {
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("listing files: %w", err)
	}
	files := strings.Fields(string(out))
	return slices.DeleteFunc(files, func(f string) bool { return !applies(f) }), nil
}

// applies reports whether a file has text of ours.
func applies(file string) bool {
	switch {
	case strings.HasPrefix(file, "hack/words/"), strings.HasPrefix(file, "docs/cli/"), strings.HasPrefix(file, "config/crd/"):
		return false // the rules themselves, and generated files
	case strings.Contains(file, "zz_generated"), strings.Contains(file, "/testdata/fuzz/"):
		return false
	}
	return slices.Contains([]string{".go", ".md", ".sh", ".txtar", ".yaml"}, filepath.Ext(file))
}

// finding is a violation of a rule.
type finding struct {
	line          int
	text, instead string
}

// check returns the violations in a file.
func check(file, text string) []finding {
	return append(phrases(text), tooLong(file, text)...)
}

// phrases returns the matches of rules in a text.
func phrases(text string) []finding {
	var all []finding
	for i, line := range strings.Split(text, "\n") {
		for _, r := range rules {
			for _, match := range r.pattern.FindAllString(line, -1) {
				all = append(all, finding{i + 1, match, r.instead})
			}
		}
	}
	return all
}
