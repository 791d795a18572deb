package userdir

import (
	"os"
	"path/filepath"
	"strings"
)

// Expand returns the absolute path of a file as a user writes it, such as ~/.ssh/id_ed25519. An
// empty path stays empty.
func Expand(path string) (string, error) {
	rest, home := strings.CutPrefix(path, "~/")
	if !home {
		if path == "" {
			return "", nil
		}
		return filepath.Abs(path)
	}
	base, err := os.UserHomeDir()
	return filepath.Join(base, rest), err
}
