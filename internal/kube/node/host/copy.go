package host

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// CopyTo copies the files below root, under their paths on the host.
func (f Files) CopyTo(root string) error {
	for _, dir := range f.Directories() {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	for _, file := range f.Sorted() {
		if err := file.copyTo(filepath.Join(root, file.Path)); err != nil {
			return fmt.Errorf("copying %q: %w", file.Path, err)
		}
	}
	return nil
}

func (f File) copyTo(path string) error {
	if f.Target != "" {
		return os.Symlink(f.Target, path)
	}
	return CopyFile(f.Path, path, f.Info.Mode())
}

// CopyFile copies the content of a regular file and sets the mode of the copy.
func CopyFile(from, to string, mode fs.FileMode) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	// The mode is set last: a set-user-ID bit doesn't survive a write.
	return errors.Join(err, dst.Chmod(mode), dst.Close())
}

// WriteTar writes the files to an archive that depends only on their names, modes and contents.
func (f Files) WriteTar(w *tar.Writer) error {
	for _, dir := range f.Directories() {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: 0o755, ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
	}
	for _, file := range f.Sorted() {
		if err := file.writeTar(w); err != nil {
			return fmt.Errorf("packing %q: %w", file.Path, err)
		}
	}
	return nil
}

func (f File) writeTar(w *tar.Writer) error {
	header := &tar.Header{Name: f.Path[1:], ModTime: time.Unix(0, 0)}
	if f.Target != "" {
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, f.Target, 0o777
		return w.WriteHeader(header)
	}
	header.Typeflag, header.Size, header.Mode = tar.TypeReg, f.Info.Size(), int64(f.Info.Mode().Perm())
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	src, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer src.Close()
	_, err = io.Copy(w, src)
	return err
}
