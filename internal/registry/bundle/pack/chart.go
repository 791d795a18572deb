package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/drover-dev/drover/internal/registry"
)

const maxSchema = 4 << 20

// readChart reads a chart archive, or packages a directory.
func readChart(file string) (*registry.Chart, []byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the chart: %w", err)
	}
	var archive []byte
	switch {
	case info.IsDir():
		absolute, err := filepath.Abs(file)
		if err != nil {
			return nil, nil, err
		}
		archive, err = registry.Pack(os.DirFS(filepath.Dir(absolute)), filepath.Base(absolute))
		if err != nil {
			return nil, nil, err
		}
	case info.Size() > registry.MaxChart:
		return nil, nil, fmt.Errorf("%q is %d MiB; the limit for charts is %d MiB", file, info.Size()>>20, registry.MaxChart>>20)
	default:
		if archive, err = os.ReadFile(file); err != nil {
			return nil, nil, fmt.Errorf("reading the chart: %w", err)
		}
	}
	chart, err := registry.ReadChart(archive)
	if err != nil {
		return nil, nil, fmt.Errorf("%q is %w", file, err)
	}
	return chart, archive, nil
}

// ReadCharts reads all chart archives in a directory.
func ReadCharts(dir string) ([]*registry.Chart, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the charts: %w", err)
	}
	var out []*registry.Chart
	for _, entry := range entries {
		if entry.IsDir() || !strings.HasSuffix(entry.Name(), ".tgz") {
			continue
		}
		chart, _, err := readChart(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, chart)
	}
	return out, nil
}

// fileOf returns a file of an archive, or nil if it doesn't exist.
func fileOf(archive []byte, name string) ([]byte, error) {
	packed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for entries := tar.NewReader(packed); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if path.Clean(entry.Name) == name {
			return io.ReadAll(io.LimitReader(entries, maxSchema))
		}
	}
}
