package values

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// Bounds of what is read of a chart, which somebody else has packed.
const (
	maxUnpacked = 256 << 20
	maxValues   = 8 << 20
)

// DefaultNamespace is where a chart wants to go if nobody says: its value defaultNamespace, which may be empty.
func DefaultNamespace(archive []byte) (string, error) {
	text, err := file(archive, "values.yaml")
	if err != nil {
		return "", fmt.Errorf("reading the chart's values: %w", err)
	}
	var values struct {
		DefaultNamespace string `json:"defaultNamespace"`
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return "", fmt.Errorf("reading the chart's values: %w", err)
	}
	return values.DefaultNamespace, nil
}

// file is what is in a file of the chart itself, not of one in it. It is empty if there is none.
func file(archive []byte, name string) ([]byte, error) {
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
