package plane

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// errLocked means that another process holds the home.
var errLocked = errors.New("another process is using this home")

// lock takes the home for this process. The kernel releases it when the
// process ends, however it ends, so a lock never outlives its holder. It is an
// open file description lock because that kind can be asked about without
// being taken.
func (h Home) lock() (*os.File, error) {
	f, err := os.OpenFile(h.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("home %q is not writable: %w", h.Dir, err)
	}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil, errLocked
	}
	return nil, fmt.Errorf("locking home %q: %w", h.Dir, err)
}

// Running tells whether a supervisor holds the home.
func (h Home) Running() bool {
	f, err := os.Open(h.lockFile())
	if err != nil {
		return false
	}
	defer f.Close()
	query := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &query)
	return err == nil && query.Type != unix.F_UNLCK
}
