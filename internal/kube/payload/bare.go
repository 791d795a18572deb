package payload

import (
	"io"
	"os"
)

// Bare reads an executable without the payload that it may carry.
func Bare(executable string) (io.ReadCloser, error) {
	size, err := bareSize(executable)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(executable)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(f, size), f}, nil
}
