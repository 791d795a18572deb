package fleet

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// Limits of the content of an artifact.
const (
	maxContent = 256 << 20
	maxEntries = 100_000
)

// unpack returns the files of a compressed tar archive. They stay in memory: the manager has no
// disk for what others wrote. A zip archive without compression serves as the file system.
func unpack(data []byte) (fs.FS, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	var files bytes.Buffer
	into := zip.NewWriter(&files)
	if err := convert(tar.NewReader(compressed), into); err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	if err := into.Close(); err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	return zip.NewReader(bytes.NewReader(files.Bytes()), int64(files.Len()))
}

func convert(from *tar.Reader, into *zip.Writer) error {
	left, names := int64(maxContent), map[string]bool{}
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		name := path.Clean(header.Name)
		if !fs.ValidPath(name) || name == "." || names[name] {
			return fmt.Errorf("entry %.200q is invalid or repeated", header.Name)
		}
		names[name] = true
		if left -= header.Size; left < 0 || len(names) > maxEntries {
			return fmt.Errorf("it has more than %d MiB or %d files", maxContent>>20, maxEntries)
		}
		if err := store(into, name, header, from); err != nil {
			return err
		}
	}
}

// store copies one entry. Links and special files have no content.
func store(into *zip.Writer, name string, header *tar.Header, content io.Reader) error {
	entry := &zip.FileHeader{Name: name, Method: zip.Store}
	entry.SetMode(header.FileInfo().Mode())
	w, err := into.CreateHeader(entry)
	if err != nil {
		return err
	}
	_, err = io.CopyN(w, content, header.Size)
	return err
}
