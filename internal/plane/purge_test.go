package plane

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestInterruptedPurgeIsResumed(t *testing.T) {
	h := Home{Dir: t.TempDir() + "/home"}
	write(t, h.metaFile(), `{"format":1}`)
	write(t, h.path("registry", "x"), "")
	if err := os.MkdirAll(h.etcdDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	// A home in use can't be removed.
	if err := unix.Mount("tmpfs", h.etcdDir(), "tmpfs", 0, "size=4k"); errors.Is(err, unix.EPERM) {
		t.Skip("mounting a file system needs root")
	} else if err != nil {
		t.Fatal(err)
	}
	err := Purge(h)
	if unmountErr := unix.Unmount(h.etcdDir(), 0); unmountErr != nil {
		t.Fatal(unmountErr)
	}
	if err == nil {
		t.Fatal("what is in use was removed")
	}
	if err := Purge(h); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.Dir); err == nil {
		t.Error("it is still there")
	}
}

func TestDiscardDeletesThePlane(t *testing.T) {
	h := Home{Dir: t.TempDir() + "/home"}
	write(t, h.metaFile(), `{"format":1}`)
	write(t, h.stateFile(), "")
	supervisor, child := startSupervisor(t, "PLANE_TEST_HOME="+h.Dir)
	go func() { _ = supervisor.Wait() }()
	if !h.Running() {
		t.Fatal("the home is not held")
	}
	// It ignores requests to exit.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Discard(ctx, h); err != nil {
		t.Fatal(err)
	}
	if child.Alive() {
		t.Error("a child process is still running, want it stopped")
	}
	if _, err := os.Stat(h.Dir); err == nil {
		t.Error("the home is still there")
	}
	if err := Discard(t.Context(), h); err != nil {
		t.Errorf("discarding a second time: got error %v, want none", err)
	}
}

func TestDiscardKeepsForeignDirectories(t *testing.T) {
	h := Home{Dir: t.TempDir()}
	write(t, h.path("thesis.txt"), "years of work")
	if err := Discard(t.Context(), h); err == nil {
		t.Error("it was taken for a home")
	}
	if _, err := os.Stat(h.path("thesis.txt")); err != nil {
		t.Error(err)
	}
}
