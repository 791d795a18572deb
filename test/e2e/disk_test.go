package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mount mounts a file system of the given size on a directory for one test.
func mount(t *testing.T, flags uintptr, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, "size="+size); errors.Is(err, unix.EPERM) {
		t.Skip("mounting a file system needs root")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("something still uses %s: %v", dir, err)
		}
	})
	return dir
}

func TestUnwritableHomeIsRejected(t *testing.T) {
	dir := mount(t, unix.MS_RDONLY, "400m")
	p := &plane{t: t, home: filepath.Join(dir, "home")}
	p.refused("is not writable", "up")
}

func TestSmallDiskIsRejected(t *testing.T) {
	p := planeAt(t, filepath.Join(mount(t, 0, "100m"), "home"))
	p.refused("free some space or choose another --home", "up")
	if _, err := os.Stat(p.home); !os.IsNotExist(err) {
		t.Errorf("a refused start made a home: %v", err)
	}
}

// TestDiskFullDuringStart fills the disk as soon as the home exists. The start fails with the
// reason, leaves nothing running, and succeeds once there is space.
func TestDiskFullDuringStart(t *testing.T) {
	t.Parallel()
	dir := mount(t, 0, "400m")
	p := planeAt(t, filepath.Join(dir, "home"))
	filler := filepath.Join(dir, "filler")
	filled, ended := make(chan error, 1), make(chan struct{})
	go func() { filled <- fillDiskWhen(filepath.Join(p.home, "home.json"), filler, ended) }()
	r := p.drover("up")
	close(ended)
	if err := <-filled; err != nil {
		t.Fatal(err)
	}
	if r.code != 1 || !strings.Contains(r.stderr, "no space left on device") {
		t.Errorf("up on a full disk ended with %d:\n%s", r.code, r.stderr)
	}
	if left := processes(p.home); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	p.must("up")
}

// fillDiskWhen fills the disk once the file exists, and keeps it full: a failing program releases
// its space.
func fillDiskWhen(file, filler string, over <-chan struct{}) error {
	began := false
	for deadline := time.Now().Add(time.Minute); began || time.Now().Before(deadline); {
		if _, err := os.Stat(file); err == nil {
			began = true
			if err := fill(filler); err != nil {
				return err
			}
		}
		select {
		case <-over:
			return nil
		case <-time.After(time.Millisecond):
		}
	}
	return errors.New("the home was never made")
}

func fill(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	for step := int64(64 << 20); step >= 4096; {
		if unix.Fallocate(int(f.Fd()), 0, size, step) != nil {
			step /= 2
			continue
		}
		size += step
	}
	return nil
}
