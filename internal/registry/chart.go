package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/drover-dev/drover/internal/base/safeyaml"
)

const (
	// MaxChart is the largest size of a chart archive that the manager accepts.
	MaxChart = 64 << 20
	// maxUnpacked limits how much of an archive is decompressed.
	maxUnpacked = 1 << 30
	maxMetadata = 1 << 20
)

// ErrNotAChart is returned for data that isn't a valid chart archive.
var ErrNotAChart = errors.New("not a chart archive")

// chartName matches a component of a repository name.
var chartName = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)

// Chart is a validated chart archive.
type Chart struct {
	Name, Version string

	archive []byte
	// metadata is Chart.yaml, as JSON.
	metadata []byte
}

// ReadChart validates a chart archive: it must be complete and contain a chart's name and version.
func ReadChart(archive []byte) (*Chart, error) {
	text, dir, err := findMetadata(archive)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAChart, err)
	}
	c := &Chart{archive: archive}
	if c.metadata, err = safeyaml.ToJSON(text); err != nil {
		return nil, fmt.Errorf("%w: parsing Chart.yaml: %w", ErrNotAChart, err)
	}
	var about struct{ APIVersion, Name, Version string }
	if err := json.Unmarshal(c.metadata, &about); err != nil {
		return nil, fmt.Errorf("%w: parsing Chart.yaml: %w", ErrNotAChart, err)
	}
	c.Name, c.Version = about.Name, about.Version
	_, err = semver.StrictNewVersion(strings.TrimPrefix(c.Version, "v"))
	switch {
	case about.APIVersion != "v1" && about.APIVersion != "v2":
		return nil, fmt.Errorf("%w: apiVersion %q in Chart.yaml, want v1 or v2", ErrNotAChart, about.APIVersion)
	case !chartName.MatchString(c.Name):
		return nil, fmt.Errorf("%w: chart name %q is not valid in a registry", ErrNotAChart, c.Name)
	case c.Name != dir:
		return nil, fmt.Errorf("%w: chart %q is in directory %q", ErrNotAChart, c.Name, dir)
	case err != nil:
		return nil, fmt.Errorf("%w: version %q is not a semantic version such as 1.2.3", ErrNotAChart, c.Version)
	}
	return c, nil
}

// findMetadata returns the Chart.yaml of the chart, not of its subcharts, and its directory. It
// reads the whole archive to detect truncation.
func findMetadata(archive []byte) (text []byte, dir string, err error) {
	packed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, "", fmt.Errorf("decompressing: %w", err)
	}
	unpacked := &io.LimitedReader{R: packed, N: maxUnpacked}
	entries := tar.NewReader(unpacked)
	for {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) && unpacked.N > 0 {
			break
		}
		if err != nil {
			return nil, "", fmt.Errorf("damaged, truncated or too large: %w", err)
		}
		if name := path.Clean(entry.Name); strings.Count(name, "/") != 1 || path.Base(name) != "Chart.yaml" || !fs.ValidPath(name) {
			continue
		}
		if text != nil {
			return nil, "", errors.New("more than one chart found")
		}
		dir = path.Dir(path.Clean(entry.Name))
		if text, err = io.ReadAll(io.LimitReader(entries, maxMetadata)); err != nil {
			return nil, "", fmt.Errorf("damaged or truncated: %w", err)
		}
	}
	if _, err := io.Copy(io.Discard, unpacked); err != nil {
		return nil, "", fmt.Errorf("damaged or truncated: %w", err)
	}
	if text == nil {
		return nil, "", errors.New("NAME/Chart.yaml not found")
	}
	return text, dir, nil
}
