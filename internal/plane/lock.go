package plane

import (
	"errors"
	"fmt"
	"os"

	"github.com/drover-dev/drover/internal/base/filelock"
)

// errLocked means that another process holds the home.
var errLocked = errors.New("another process is using this home")

// lock locks the home for this process.
func (h Home) lock() (*os.File, error) {
	f, err := filelock.Try(h.lockFile())
	if errors.Is(err, filelock.ErrHeld) {
		return nil, errLocked
	}
	if err != nil {
		return nil, fmt.Errorf("home %q is not writable: %w", h.Dir, err)
	}
	return f, nil
}

// Running reports whether a supervisor holds the home.
func (h Home) Running() bool { return filelock.Held(h.lockFile()) }
