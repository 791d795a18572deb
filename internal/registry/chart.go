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
	"sigs.k8s.io/yaml"
)

const (
	// MaxChart is how large an archive may be. The manager takes no larger ones.
	MaxChart = 64 << 20
	// maxUnpacked bounds what is read of an archive that unpacks to very much.
	maxUnpacked = 1 << 30
	maxMetadata = 1 << 20
)

// ErrNotAChart says that something is not the archive of a Helm chart.
var ErrNotAChart = errors.New("not a chart archive")

// chartName is what a part of a repository's name may be.
var chartName = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)

// Chart is the archive of a Helm chart, which was looked at.
type Chart struct {
	Name, Version string

	archive []byte
	// metadata is Chart.yaml, as JSON.
	metadata []byte
}

// ReadChart refuses what Helm could not use: archives that are damaged or cut short, or without a chart's name and version in them.
func ReadChart(archive []byte) (*Chart, error) {
	text, dir, err := findMetadata(archive)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAChart, err)
	}
	c := &Chart{archive: archive}
	if c.metadata, err = yaml.YAMLToJSON(text); err != nil {
		return nil, fmt.Errorf("%w: its Chart.yaml can't be read: %w", ErrNotAChart, err)
	}
	var about struct{ APIVersion, Name, Version string }
	if err := json.Unmarshal(c.metadata, &about); err != nil {
		return nil, fmt.Errorf("%w: its Chart.yaml can't be read: %w", ErrNotAChart, err)
	}
	c.Name, c.Version = about.Name, about.Version
	_, err = semver.StrictNewVersion(strings.TrimPrefix(c.Version, "v"))
	switch {
	case about.APIVersion != "v1" && about.APIVersion != "v2":
		return nil, fmt.Errorf("%w: its Chart.yaml has apiVersion %q, not v1 or v2", ErrNotAChart, about.APIVersion)
	case !chartName.MatchString(c.Name):
		return nil, fmt.Errorf("%w: a registry can't have a chart of the name %q", ErrNotAChart, c.Name)
	case c.Name != dir:
		return nil, fmt.Errorf("%w: the chart %q is in a directory %q", ErrNotAChart, c.Name, dir)
	case err != nil:
		return nil, fmt.Errorf("%w: its version %q is not like 1.2.3", ErrNotAChart, c.Version)
	}
	return c, nil
}

// findMetadata returns the Chart.yaml of the chart itself, not those of charts inside it, and the directory that it is in. It reads to the
// end, since only that proves that nothing is missing.
func findMetadata(archive []byte) (text []byte, dir string, err error) {
	packed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, "", fmt.Errorf("it is not compressed with gzip: %w", err)
	}
	unpacked := &io.LimitedReader{R: packed, N: maxUnpacked}
	entries := tar.NewReader(unpacked)
	for {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) && unpacked.N > 0 {
			break
		}
		if err != nil {
			return nil, "", fmt.Errorf("it is damaged, cut short or too large: %w", err)
		}
		if name := path.Clean(entry.Name); strings.Count(name, "/") != 1 || path.Base(name) != "Chart.yaml" || !fs.ValidPath(name) {
			continue
		}
		if text != nil {
			return nil, "", errors.New("there is more than one chart in it")
		}
		dir = path.Dir(path.Clean(entry.Name))
		if text, err = io.ReadAll(io.LimitReader(entries, maxMetadata)); err != nil {
			return nil, "", fmt.Errorf("it is damaged or cut short: %w", err)
		}
	}
	if _, err := io.Copy(io.Discard, unpacked); err != nil {
		return nil, "", fmt.Errorf("it is damaged or cut short: %w", err)
	}
	if text == nil {
		return nil, "", errors.New("there is no NAME/Chart.yaml in it")
	}
	return text, dir, nil
}
