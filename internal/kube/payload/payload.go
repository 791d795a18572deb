// Package payload stores a compressed Kubernetes binary at the end of an executable, so that a
// released Drover is a single file:
//
//	executable | zstd stream | header (JSON) | lengths (2 × 8 bytes) | magic
//
// Loaders ignore data after the last section, so the program still runs. The package knows only
// this format; package kube decides where to unpack. Start at [Attach] and [Open].
package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

const (
	magic     = "drover-kube-pay1"
	footerLen = 16 + len(magic)
	// maxHeader bounds the size of a header in a possibly damaged file.
	maxHeader = 64 << 10
)

// ErrNone means that an executable carries no payload.
var ErrNone = errors.New("no payload")

// CorruptError means that an executable carries a payload that is damaged.
type CorruptError struct {
	File string
	Why  string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("the Kubernetes binary inside %q is damaged (%s): download or build the file again", e.File, e.Why)
}

// Header describes the binary inside a payload, uncompressed.
type Header struct {
	Version string `json:"version"`
	Key     string `json:"key"`
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size"`
}

// Payload is the payload of an executable.
type Payload struct {
	Header
	file   string
	offset int64 // where the zstd stream starts, which is the size of the bare executable
	length int64 // of the zstd stream
}

// Open reads the header of an executable's payload. It returns ErrNone if there is none.
func Open(file string) (Payload, error) {
	f, err := os.Open(file)
	if err != nil {
		return Payload{}, fmt.Errorf("finding the payload: %w", err)
	}
	defer f.Close()
	return read(f)
}

func read(f *os.File) (Payload, error) {
	info, err := f.Stat()
	if err != nil {
		return Payload{}, err
	}
	end := info.Size() - int64(footerLen)
	if end < 0 {
		return Payload{}, ErrNone
	}
	footer := make([]byte, footerLen)
	if _, err := f.ReadAt(footer, end); err != nil {
		return Payload{}, fmt.Errorf("reading the end of %q: %w", f.Name(), err)
	}
	if !bytes.Equal(footer[16:], []byte(magic)) {
		return Payload{}, ErrNone
	}
	streamLen, headerLen := binary.BigEndian.Uint64(footer), binary.BigEndian.Uint64(footer[8:])
	if headerLen > maxHeader || streamLen > uint64(end) || headerLen+streamLen > uint64(end) {
		return Payload{}, &CorruptError{File: f.Name(), Why: "impossible lengths"}
	}
	return readHeader(f, end, int64(streamLen), int64(headerLen))
}

func readHeader(f *os.File, end, streamLen, headerLen int64) (Payload, error) {
	p := Payload{file: f.Name(), offset: end - headerLen - streamLen, length: streamLen}
	data := make([]byte, headerLen)
	if _, err := f.ReadAt(data, end-headerLen); err != nil {
		return p, fmt.Errorf("reading the payload header of %q: %w", f.Name(), err)
	}
	if err := json.Unmarshal(data, &p.Header); err != nil {
		return p, &CorruptError{File: f.Name(), Why: "unreadable header"}
	}
	if len(p.SHA256) != hex.EncodedLen(sha256.Size) || p.Size <= 0 || p.Version == "" {
		return p, &CorruptError{File: f.Name(), Why: "incomplete header"}
	}
	return p, nil
}

// Unpack writes the binary to w and verifies it against the header. If it returns an error, the
// output must not be used.
func (p Payload) Unpack(w io.Writer) error {
	f, err := os.Open(p.file)
	if err != nil {
		return fmt.Errorf("unpacking the payload: %w", err)
	}
	defer f.Close()
	z, err := zstd.NewReader(io.NewSectionReader(f, p.offset, p.length))
	if err != nil {
		return fmt.Errorf("unpacking the payload: %w", err)
	}
	defer z.Close()
	sum := sha256.New()
	// Reading one byte more than announced detects a stream that is too long.
	source := &reader{r: io.LimitReader(z, p.Size+1)}
	n, err := io.Copy(io.MultiWriter(w, sum), source)
	switch {
	case source.err != nil:
		return &CorruptError{File: p.file, Why: source.err.Error()}
	case err != nil:
		return fmt.Errorf("unpacking the payload: %w", err)
	case n != p.Size:
		return &CorruptError{File: p.file, Why: "wrong size"}
	case hex.EncodeToString(sum.Sum(nil)) != p.SHA256:
		return &CorruptError{File: p.file, Why: "wrong checksum"}
	}
	return nil
}

// reader records its error, to distinguish a damaged stream from a failure to write.
type reader struct {
	r   io.Reader
	err error
}

func (r *reader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
