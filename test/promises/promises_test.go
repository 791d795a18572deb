// Package promises checks that docs/security.md and the table of faults name existing tests. It is
// apart from test/docs, which takes minutes, because its result depends on every test file.
package promises

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../.."

// TestNamedTestsExist checks that every test exists that the security page names, and the table of
// faults for those that it doesn't inject itself.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	existing := testNames(t)
	for file, names := range map[string]string{
		"docs/security.md":                "`Test[A-Z]\\w+`",
		"internal/manager/faults_test.go": `(?m)^//.*`,
	} {
		text, err := os.ReadFile(filepath.Join(repository, file))
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`Test[A-Z]\w+`).FindAllString(strings.Join(regexp.MustCompile(names).FindAllString(string(text), -1), "\n"), -1)
		if len(named) == 0 {
			t.Errorf("%s names no tests", file)
		}
		for _, name := range named {
			if !existing[name] {
				t.Errorf("%s names %s, which doesn't exist", file, name)
			}
		}
	}
}

// testNames returns the names of all tests.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
			names[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
