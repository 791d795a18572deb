// Command words rejects turns of phrase that read like a translation, in code, docs and scripts.
// The rules are in rules.go.
//
// Text that is older than the rules is listed in baseline.txt with a count per file. A file may
// have fewer matches than that, never more; "go run ./hack/words -update" lowers the counts.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const baselineFile = "hack/words/baseline.txt"

func main() {
	update := flag.Bool("update", false, "lower the counts of "+baselineFile+" to what is left")
	flag.Parse()
	if err := run(*update); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(update bool) error { //nolint:revive // a flag of the command
	files, err := tracked()
	if err != nil {
		return err
	}
	allowed, err := readBaseline()
	if err != nil {
		return err
	}
	left, wrong := map[string]int{}, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		found := check(string(data))
		left[file] = len(found)
		if allowed != nil {
			left[file] = min(len(found), allowed[file])
		}
		if len(found) <= allowed[file] {
			continue
		}
		wrong += len(found) - allowed[file]
		for _, f := range found {
			fmt.Printf("%s:%d: %q: %s\n", file, f.line, f.text, f.instead)
		}
	}
	if update {
		return os.WriteFile(baselineFile, formatBaseline(left), 0o600)
	}
	if wrong > 0 {
		return fmt.Errorf("%d more matches than %s allows", wrong, baselineFile)
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

// finding is a match of a rule.
type finding struct {
	line          int
	text, instead string
}

// check returns the matches in a file's text.
func check(text string) []finding {
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

func readBaseline() (map[string]int, error) {
	data, err := os.ReadFile(baselineFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // -update starts from what there is
	}
	if err != nil {
		return nil, err
	}
	return parseBaseline(data)
}

func parseBaseline(data []byte) (map[string]int, error) {
	counts := map[string]int{}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		var (
			n    int
			file string
		)
		if _, err := fmt.Sscanf(s.Text(), "%d %s", &n, &file); err != nil {
			return nil, fmt.Errorf("%s: line %q is not a count and a file", baselineFile, s.Text())
		}
		counts[file] = n
	}
	return counts, nil
}

func formatBaseline(counts map[string]int) []byte {
	var all bytes.Buffer
	for _, file := range slices.Sorted(maps.Keys(counts)) {
		if counts[file] > 0 {
			fmt.Fprintf(&all, "%d %s\n", counts[file], file)
		}
	}
	return all.Bytes()
}
