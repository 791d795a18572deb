package capi

import (
	"io"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"

	"github.com/drover-dev/drover/internal/base/bounded"
)

// maxMessage is the maximum size of a compressed message of gRPC after decompression. The etcd
// client accepts messages of 2 GiB, and compressed ones because the exporter of traces registers
// gzip for the whole process.
const maxMessage = 1 << 20

// init replaces the decompressor of gRPC, which can be done only during initialization. That of the
// library is registered before, because it is imported here.
func init() { //nolint:gochecknoinits // gRPC requires it
	encoding.RegisterCompressor(limitedGzip{encoding.GetCompressor(gzip.Name)})
}

type limitedGzip struct{ encoding.Compressor }

// Decompress returns a reader that fails after maxMessage bytes.
func (g limitedGzip) Decompress(from io.Reader) (io.Reader, error) {
	r, err := g.Compressor.Decompress(from)
	if err != nil {
		return nil, err
	}
	return &message{Reader: r, left: maxMessage}, nil
}

type message struct {
	io.Reader
	left int
}

func (m *message) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if m.left -= n; m.left < 0 {
		return 0, &bounded.TooLargeError{Peer: "gRPC server", Limit: maxMessage}
	}
	return n, err
}

// Close returns the decompressor to its pool.
func (m *message) Close() error {
	if c, ok := m.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
