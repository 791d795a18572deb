package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// Pack packages the chart in a directory. The archive is reproducible on every machine and with
// every compiler: it contains only names and content, and is not compressed.
func Pack(files fs.FS, dir string) ([]byte, error) {
	var out bytes.Buffer
	packed, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(packed)
	err = fs.WalkDir(files, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		inside := path.Join(path.Base(dir), name[len(dir):])
		header := &tar.Header{Typeflag: tar.TypeReg, Name: inside, Size: int64(len(content)), Mode: 0o644, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err := errors.Join(err, archive.Close(), packed.Close()); err != nil {
		return nil, fmt.Errorf("packing chart %q: %w", dir, err)
	}
	return out.Bytes(), nil
}
