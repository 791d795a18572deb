package payload

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// Compress compresses a payload. It favors speed over size because every build does it.
func Compress(dst io.Writer, src io.Reader) error {
	z, err := zstd.NewWriter(dst, zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return err
	}
	if _, err := io.Copy(z, src); err != nil {
		z.Close()
		return err
	}
	return z.Close()
}

// Attach appends a payload, compressed by Compress, to an executable and replaces an existing one.
// The executable is replaced atomically: a process that runs it keeps the old file.
func Attach(executable, compressed string, h Header) error {
	bare, err := bareSize(executable)
	if err != nil {
		return fmt.Errorf("attaching a payload to %q: %w", executable, err)
	}
	if err := replace(executable, func(w io.Writer) error {
		return assemble(w, executable, bare, compressed, h)
	}); err != nil {
		return fmt.Errorf("attaching a payload to %q: %w", executable, err)
	}
	return nil
}

func bareSize(executable string) (int64, error) {
	p, err := Open(executable)
	if err == nil {
		return p.offset, nil
	}
	if !errors.Is(err, ErrNone) {
		return 0, err
	}
	info, err := os.Stat(executable)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func assemble(w io.Writer, executable string, bare int64, compressed string, h Header) error {
	if _, err := copyFile(w, executable, bare); err != nil {
		return err
	}
	streamLen, err := copyFile(w, compressed, 1<<62)
	if err != nil {
		return err
	}
	header, err := json.Marshal(h)
	if err != nil {
		return err
	}
	tail := binary.BigEndian.AppendUint64(header, uint64(streamLen))
	tail = binary.BigEndian.AppendUint64(tail, uint64(len(header)))
	_, err = w.Write(append(tail, magic...))
	return err
}

func copyFile(w io.Writer, path string, limit int64) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return io.Copy(w, io.LimitReader(f, limit))
}

// replace writes a new file next to the old one and renames it, keeping the permissions.
func replace(path string, write func(io.Writer) error) error {
	old, err := os.Stat(path)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	if err := errors.Join(write(temp), temp.Chmod(old.Mode().Perm()), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
