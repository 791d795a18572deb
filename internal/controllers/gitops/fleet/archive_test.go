package fleet

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// entry is an entry of a test archive.
type tarEntry struct {
	name, content string
	kind          byte
}

func pack(t *testing.T, entries ...tarEntry) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.content)), Typeflag: e.kind}
		if e.kind == tar.TypeSymlink {
			header.Linkname, header.Size = "/etc/passwd", 0
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestUnpackReturnsFilesAndMarksLinks(t *testing.T) {
	fsys, err := unpack(pack(t,
		tarEntry{"./clusters/", "", tar.TypeDir}, tarEntry{"./clusters/a.yaml", "a: 1", tar.TypeReg}, tarEntry{"clusters/link", "", tar.TypeSymlink}))
	if err != nil {
		t.Fatal(err)
	}
	data, err := fs.ReadFile(fsys, "clusters/a.yaml")
	if err != nil || string(data) != "a: 1" {
		t.Errorf("a.yaml is %q, %v", data, err)
	}
	got := map[string]bool{}
	err = fs.WalkDir(fsys, "clusters", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got[name] = d.Type().IsRegular()
		}
		return err
	})
	if diff := cmp.Diff(map[string]bool{"clusters/a.yaml": true, "clusters/link": false}, got); diff != "" || err != nil {
		t.Errorf("regular files (-want +got):\n%s%v", diff, err)
	}
}

func TestUnpackRejects(t *testing.T) {
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"a path that leaves the archive": {pack(t, tarEntry{"../x", "", tar.TypeReg}), "invalid or repeated"},
		"a file that is the directory":   {pack(t, tarEntry{".", "", tar.TypeReg}), "invalid or repeated"},
		"an absolute path":               {pack(t, tarEntry{"/x", "", tar.TypeReg}), "invalid or repeated"},
		"a file that comes twice":        {pack(t, tarEntry{"x", "1", tar.TypeReg}, tarEntry{"./x", "2", tar.TypeReg}), "invalid or repeated"},
		"a truncated archive":            {pack(t, tarEntry{"x", "1", tar.TypeReg})[:30], "unexpected EOF"},
		"no archive":                     {[]byte("404 page not found"), "gzip: invalid header"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := unpack(tt.data); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}
