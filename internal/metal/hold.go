package metal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/base/filelock"
	"github.com/drover-dev/drover/internal/base/process"
)

// LockFile is locked by commands that start, stop or remove the metal service.
func (h Home) LockFile() string { return h.path("lock") }

// servingFile is locked by the metal service while it runs, and contains its process ID.
func (h Home) servingFile() string { return h.path("serving") }

// Hold locks the home for the metal service that runs in this process.
func (h Home) Hold() (release func(), err error) {
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating home %q: %w: choose another --home or fix the permissions", h.Dir, err)
	}
	f, err := filelock.Try(h.servingFile())
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("home %q is in use by another metal service: stop it with `drover metal stop`, or choose another --home", h.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("locking home %q: %w", h.Dir, err)
	}
	release = func() { _ = f.Close() }
	if err := writeHolder(f); err != nil {
		release()
		return nil, fmt.Errorf("locking home %q: %w", h.Dir, err)
	}
	return release, nil
}

func writeHolder(f *os.File) error {
	data, err := json.Marshal(process.Identify(os.Getpid()))
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	return err
}

// Held reports whether a metal service holds the home, including one that does not serve yet.
func (h Home) Held() bool { return filelock.Held(h.servingFile()) }

// Holder returns the metal service that holds the home, or the zero Process if it has not recorded
// its ID yet.
func (h Home) Holder() process.Process {
	var p process.Process
	data, err := os.ReadFile(h.servingFile())
	if err != nil || json.Unmarshal(data, &p) != nil {
		return process.Process{}
	}
	return p
}

// LastDriver returns the driver whose machines the home may contain, or "".
func (h Home) LastDriver() string {
	if e, err := h.ReadEndpoint(); err == nil && e.Driver != "" {
		return e.Driver
	}
	dirs, _ := filepath.Glob(h.driverDir("*"))
	if len(dirs) == 0 {
		return ""
	}
	return strings.TrimPrefix(filepath.Base(dirs[0]), filepath.Base(h.driverDir("")))
}

// Remove removes a home without machines and keeps foreign files in the directory. It can be
// repeated. The caller holds both locks.
func (h Home) Remove() error {
	if left, _ := filepath.Glob(h.path("driver-*", "machines", "*")); len(left) > 0 {
		return fmt.Errorf("home %q still has machines, such as %q: run `drover metal purge` again", h.Dir, left[0])
	}
	ours, err := filepath.Glob(h.driverDir("*"))
	if err != nil {
		return fmt.Errorf("listing drivers in %q: %w", h.Dir, err)
	}
	// The locks are removed last, so that no metal service starts in between.
	ours = append(ours, h.storeFile(), h.sealFile(), h.path("tokens"), h.path("tls"), h.path("logs"), h.EndpointFile(), h.servingFile(), h.LockFile())
	for _, path := range ours {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing %q: %w", path, err)
		}
	}
	if entries, err := os.ReadDir(h.Dir); err == nil && len(entries) > 0 {
		return nil
	}
	if err := os.Remove(h.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("removing home %q: %w", h.Dir, err)
	}
	return nil
}
