package fleet

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"testing"
)

// FuzzUnpack finds archives of source-controller that become a broken file system. The input is the
// tar archive, because compressed data rarely survives a mutation.
func FuzzUnpack(f *testing.F) {
	for _, name := range []string{"a/b.yaml", "../a", "/a", "a//b", ""} {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		_ = w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 2})
		_, _ = w.Write([]byte("{}"))
		_ = w.Close()
		f.Add(archive.Bytes())
	}
	f.Fuzz(func(t *testing.T, archive []byte) {
		var compressed bytes.Buffer
		w := gzip.NewWriter(&compressed)
		_, _ = w.Write(archive) // a buffer accepts everything
		_ = w.Close()
		files, err := unpack(compressed.Bytes())
		if err != nil {
			return
		}
		err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			_, err = fs.ReadFile(files, name)
			return err
		})
		if err != nil {
			t.Errorf("the files can't be read: %v", err)
		}
	})
}
