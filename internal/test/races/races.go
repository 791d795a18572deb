// Package races lists the data races of other projects in suppressions.txt. The race detector reads
// it; "make test" passes it to every test binary. It never hides a race of our own code. Start with
// Suppress.
package races

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed suppressions.txt
var list []byte

// variable holds the options of the race detector, which reads it when a process starts.
const variable = "GORACE"

// Suppress makes child processes read the list, unless "make test" already does. The returned
// function removes the list.
func Suppress() (forget func(), err error) {
	if os.Getenv(variable) != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "races-")
	if err != nil {
		return nil, fmt.Errorf("creating a directory for the list of data races: %w", err)
	}
	file := filepath.Join(dir, "suppressions.txt")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		return nil, fmt.Errorf("writing the list of data races: %w", err)
	}
	return func() { os.RemoveAll(dir) }, os.Setenv(variable, "suppressions="+file)
}
