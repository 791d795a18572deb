package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if Held(path) {
		t.Error("a lock that was never made is held")
	}
	first, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Errorf("a second holder gets %v", err)
	}
	if !Held(path) {
		t.Error("the lock is not held")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if Held(path) {
		t.Error("the lock outlives its holder")
	}
}

func TestWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 2*pollInterval)
	defer cancel()
	if _, err := Wait(short, path); !errors.Is(err, ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait in vain ends with %v", err)
	}
	time.AfterFunc(2*pollInterval, func() { _ = first.Close() })
	second, err := Wait(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_ = second.Close()
}

// TestRemovedLockFileIsNotLocked prevents two holders of different files with one name.
func TestRemovedLockFileIsNotLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	removed, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer removed.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := checkNotRemoved(removed, path); !errors.Is(err, ErrHeld) {
		t.Errorf("the lock on a file without a name: %v", err)
	}
	next, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if err := checkNotRemoved(removed, path); !errors.Is(err, ErrHeld) {
		t.Errorf("lock on a replaced file: got error %v, want %v", err, ErrHeld)
	}
}

func TestMissingDirectoryIsAnError(t *testing.T) {
	if _, err := Wait(t.Context(), filepath.Join(t.TempDir(), "gone", "lock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v, want %v", err, os.ErrNotExist)
	}
}
