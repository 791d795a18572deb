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

// mount puts a file system of the given size into a directory for one test.
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

func TestAHomeThatIsNotWritableIsRefused(t *testing.T) {
	dir := mount(t, unix.MS_RDONLY, "400m")
	p := &plane{t: t, home: filepath.Join(dir, "home")}
	p.refused("is not writable", "up")
}

func TestASmallDiskIsRefused(t *testing.T) {
	p := planeAt(t, filepath.Join(mount(t, 0, "100m"), "home"))
	p.refused("make room or choose another --home", "up")
	if _, err := os.Stat(p.home); !os.IsNotExist(err) {
		t.Errorf("a refused start made a home: %v", err)
	}
}

// TestADiskThatFillsUpWhileStarting fills the disk as soon as the home is
// there. The start fails with the reason, leaves nothing running, and works
// once there is room.
func TestADiskThatFillsUpWhileStarting(t *testing.T) {
	dir := mount(t, 0, "400m")
	p := planeAt(t, filepath.Join(dir, "home"))
	filler := filepath.Join(dir, "filler")
	filled := make(chan error, 1)
	go func() { filled <- fillWhen(filepath.Join(p.home, "home.json"), filler) }()
	r := p.drover("up")
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

// fillWhen fills the disk once the file is there.
func fillWhen(file, filler string) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return fill(filler)
		}
	}
	return errors.New("the home was never made")
}

func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	size := int64(0)
	for step := int64(64 << 20); step >= 4096; {
		if unix.Fallocate(int(f.Fd()), 0, size, step) != nil {
			step /= 2
			continue
		}
		size += step
	}
	return nil
}
