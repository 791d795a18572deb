package memory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const disksDir = "disks"

// disks keep what a machine's own disk would: its userdata, which metal deletes after the first
// boot.
type disks struct{ dir string }

func (d disks) path(id string) string { return filepath.Join(d.dir, filepath.Base(id)) }

// boot returns the userdata that a machine boots with: the given one, or the one on its disk.
func (d disks) boot(id string, userdata []byte) ([]byte, error) {
	if len(userdata) > 0 {
		return userdata, d.install(id, userdata)
	}
	data, err := os.ReadFile(d.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// install replaces the content of a disk. A torn write doesn't matter: until the machine has
// booted, metal provides the userdata again.
func (d disks) install(id string, userdata []byte) error {
	if len(userdata) == 0 {
		return d.remove(id)
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(d.path(id), userdata, 0o600)
}

func (d disks) remove(id string) error {
	err := os.Remove(d.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
