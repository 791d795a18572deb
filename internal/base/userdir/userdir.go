// Package userdir finds the directories in which Drover stores a user's files, for the plane and
// for metal alike. It creates none. Start with Find.
package userdir

import (
	"os"
	"path/filepath"
)

// Find returns the directory that the variable names, or the one of that name in the user's home
// directory.
func Find(variable, name string) string {
	if dir := os.Getenv(variable); dir != "" {
		return dir
	}
	base, err := os.UserHomeDir()
	if err != nil {
		base = string(filepath.Separator)
	}
	return filepath.Join(base, name)
}
