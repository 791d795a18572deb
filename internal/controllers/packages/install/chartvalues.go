package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// Limits for reading a chart.
const (
	maxUnpacked = 256 << 20
	maxValues   = 8 << 20
)

// defaultNamespace returns the value defaultNamespace of a chart, which may be empty.
func defaultNamespace(archive []byte) (string, error) {
	text, err := chartFile(archive, "values.yaml")
	if err != nil {
		return "", fmt.Errorf("reading the chart's values: %w", err)
	}
	var values struct {
		DefaultNamespace string `json:"defaultNamespace"`
	}
	if err := safeyaml.Unmarshal(text, &values); err != nil {
		return "", fmt.Errorf("reading the chart's values: %w", err)
	}
	return values.DefaultNamespace, nil
}

// chartFile returns a file of the chart, not of its subcharts, or nil if it doesn't exist.
func chartFile(archive []byte, name string) ([]byte, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	defer unpacked.Close()
	files := tar.NewReader(io.LimitReader(unpacked, maxUnpacked))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		_, inside, found := strings.Cut(strings.TrimPrefix(path.Clean(header.Name), "/"), "/")
		if !found || inside != name || header.Typeflag != tar.TypeReg {
			continue
		}
		if header.Size > maxValues {
			return nil, fmt.Errorf("%q is too large", name)
		}
		return io.ReadAll(files)
	}
}
