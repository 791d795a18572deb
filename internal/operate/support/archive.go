package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// archive is a compressed tar file.
type archive struct {
	zip *gzip.Writer
	tar *tar.Writer
	now time.Time
}

func newArchive(to io.Writer) *archive {
	zip := gzip.NewWriter(to)
	return &archive{zip: zip, tar: tar.NewWriter(zip), now: time.Now()}
}

func (a *archive) write(name string, data []byte) error {
	// Names of objects are untrusted, and some contain colons.
	name = "support-bundle/" + strings.NewReplacer(":", "_", "..", "_").Replace(name)
	header := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), ModTime: a.now, Format: tar.FormatPAX}
	if err := a.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("adding %q to the archive: %w", name, err)
	}
	if _, err := a.tar.Write(data); err != nil {
		return fmt.Errorf("adding %q to the archive: %w", name, err)
	}
	return nil
}

func (a *archive) close() error { return errors.Join(a.tar.Close(), a.zip.Close()) }

// lastBytes reads to the end and returns at most the last bytes, starting with a complete line.
func lastBytes(r io.Reader, most int64) ([]byte, error) {
	var kept []byte
	cut := false
	chunk := make([]byte, 64<<10)
	for {
		n, err := r.Read(chunk)
		kept = append(kept, chunk[:n]...)
		if over := int64(len(kept)) - 2*most; over > 0 {
			kept, cut = append([]byte(nil), kept[int64(len(kept))-most:]...), true
		}
		if err != nil {
			if over := int64(len(kept)) - most; over > 0 {
				kept, cut = kept[over:], true
			}
			if _, rest, found := bytes.Cut(kept, []byte("\n")); cut && found {
				kept = rest
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return kept, err
		}
	}
}
