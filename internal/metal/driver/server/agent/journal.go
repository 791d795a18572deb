package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/drover-dev/drover/internal/base/atomicfile"
)

// change is a line of the journal: a path that the agent is about to change.
type change struct {
	Path string `json:"path"`
	// Backup is the name of the copy of what was there. Empty means that there was nothing.
	Backup string `json:"backup,omitempty"`
	// Link is the target of the symbolic link that was there.
	Link string `json:"link,omitempty"`
}

// journal records changes before they happen, so that a server can be restored whatever was killed
// in between. Below root there are the files of the server, in dir those of the journal.
type journal struct{ root, dir string }

func (j journal) file() string { return filepath.Join(j.dir, "journal.jsonl") }

// read returns the changes in the order in which they were recorded. A torn last line was never
// followed by a change.
func (j journal) read() ([]change, error) {
	f, err := os.Open(j.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []change
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var c change
		if err := json.Unmarshal(line, &c); err == nil {
			all = append(all, c)
		}
	}
}

// protect records what is at a path, once, and creates its directory.
func (j journal) protect(path string) error {
	all, err := j.read()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(c change) bool { return c.Path == path }) {
		return nil
	}
	if parent := filepath.Dir(path); parent != "/" {
		if _, err := os.Lstat(filepath.Join(j.root, parent)); errors.Is(err, fs.ErrNotExist) {
			if err := j.protect(parent); err != nil {
				return err
			}
			if err := os.Mkdir(filepath.Join(j.root, parent), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	c := change{Path: path}
	info, err := os.Lstat(filepath.Join(j.root, path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		if c.Link, err = os.Readlink(filepath.Join(j.root, path)); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		c.Backup = strconv.Itoa(len(all))
		if err := copyFile(filepath.Join(j.root, path), j.backup(c), info); err != nil {
			return err
		}
	default:
		return nil // A directory that was there stays.
	}
	return j.append(c)
}

func (j journal) backup(c change) string { return filepath.Join(j.dir, "backup", c.Backup) }

// append makes a line durable.
func (j journal) append(c change) error {
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return err
	}
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(j.file(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	// The empty line ends a torn one, if there is one.
	_, err = f.Write(append(append([]byte("\n"), line...), '\n'))
	return errors.Join(err, f.Sync(), f.Close(), atomicfile.SyncDir(j.dir))
}

// restore undoes all changes, the last first. It can be repeated.
func (j journal) restore() error {
	all, err := j.read()
	if err != nil {
		return err
	}
	for _, c := range slices.Backward(all) {
		if e := j.undo(c); e != nil {
			err = errors.Join(err, fmt.Errorf("restoring %q: %w", c.Path, e))
		}
	}
	return err
}

func (j journal) undo(c change) error {
	at := filepath.Join(j.root, c.Path)
	switch {
	case c.Link != "":
		if have, err := os.Readlink(at); err == nil && have == c.Link {
			return nil
		}
		return errors.Join(removeAll(at), os.Symlink(c.Link, at))
	case c.Backup != "":
		info, err := os.Stat(j.backup(c))
		if err != nil {
			return err
		}
		return errors.Join(copyFile(j.backup(c), at, info))
	}
	return removeAll(at)
}

// removeAll removes what is at a path. A mount point keeps its directory.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if errors.Is(err, syscall.EBUSY) {
		return empty(path)
	}
	return err
}

// empty removes what is in a directory.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// copyFile replaces a file, with the owner and the mode of another one.
func copyFile(from, to string, info fs.FileInfo) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := atomicfile.Stream(to, info.Mode().Perm(), func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	}); err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return os.Lchown(to, int(stat.Uid), int(stat.Gid))
	}
	return nil
}
