// Package filelock locks a directory for one process, through a file in it. The kernel releases a
// lock when its holder exits for any reason, so a lock never outlives its holder; the file remains
// and has no meaning by itself. Start with Try.
package filelock

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld means that another process has the lock.
var ErrHeld = errors.New("another process holds the lock")

// pollInterval is the polling interval of Wait.
const pollInterval = 20 * time.Millisecond

// Try takes the lock if it is free. Closing the file releases it. It is an open file description
// lock because that kind can be queried without being taken.
func Try(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if err == nil {
		if err = checkNotRemoved(f, path); err == nil {
			return f, nil
		}
	}
	_ = f.Close()
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil, ErrHeld
	}
	return nil, err
}

// checkNotRemoved rejects the lock on a file that its last holder has removed: the next process
// would lock another file of that name.
func checkNotRemoved(f *os.File, path string) error {
	ours, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(path)
	if err != nil || !os.SameFile(ours, named) {
		return ErrHeld
	}
	return nil
}

// Wait takes the lock as soon as it is free.
func Wait(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ErrHeld, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// Held reports whether a process holds the lock.
func Held(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	query := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &query)
	return err == nil && query.Type != unix.F_UNLCK
}
