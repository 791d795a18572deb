// Package inputs tells the go command what a test depends on besides its code, so that it runs
// again when that changes. Start with DependOn.
package inputs

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// DependOn opens the directories below dir: the go command runs the test again when one changes.
func DependOn(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return f.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}
