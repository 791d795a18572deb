package cache

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lockInterval is how often a waiting process tries again. A blocking flock could not be
// interrupted by the user.
const lockInterval = 100 * time.Millisecond

var errLocked = errors.New("locked by another process")

// lock waits for the lock and takes it. The kernel releases it when the process dies. The file
// remains on purpose: removing it would let two processes lock different files of the same name.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	unlock, err = tryLock(path)
	if !errors.Is(err, errLocked) {
		return unlock, err
	}
	if waiting != nil {
		waiting()
	}
	tick := time.NewTicker(lockInterval)
	defer tick.Stop()
	for errors.Is(err, errLocked) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
			unlock, err = tryLock(path)
		}
	}
	return unlock, err
}

func tryLock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return func() { f.Close() }, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, &os.PathError{Op: "flock", Path: path, Err: err}
}
