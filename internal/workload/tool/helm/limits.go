package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Limits of charts. The manager keeps the content of a chart in memory, and parsers of YAML take a
// hundred times the memory of a text that consists of nothing but structure.
const (
	maxUnpacked = 64 << 20
	maxMetadata = 2 << 20
	maxNested   = 8
	maxYAMLSize = 1_000_000
)

// chartSize is what is left of the limits while an archive is read.
type chartSize struct{ unpacked, metadata int64 }

// checkArchive reads an archive, and archives in it, without keeping anything, and returns an error
// if its content exceeds the limits.
func checkArchive(archive []byte) error {
	left := &chartSize{unpacked: maxUnpacked, metadata: maxMetadata}
	return left.check(bytes.NewReader(archive), maxNested)
}

var errChartTooLarge = fmt.Errorf("content is larger than %d MiB, or its values and metadata than %d MiB", maxUnpacked>>20, maxMetadata>>20)

func (s *chartSize) check(archive io.Reader, nested int) error {
	if nested == 0 {
		return errors.New("archives are nested too deeply")
	}
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	files := tar.NewReader(io.LimitReader(unzipped, maxUnpacked+1))
	for {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.unpacked -= file.Size
		if isMetadata(file.Name) {
			s.metadata -= file.Size
		}
		if s.unpacked < 0 || s.metadata < 0 {
			return errChartTooLarge
		}
		if strings.Contains(file.Name, "/charts/") && path.Ext(file.Name) == ".tgz" {
			if err := s.check(files, nested-1); err != nil {
				return err
			}
		}
	}
}

// isMetadata reports whether a file is parsed when a chart is loaded.
func isMetadata(name string) bool {
	switch path.Base(name) {
	case "Chart.yaml", "Chart.lock", "values.yaml", "requirements.yaml", "requirements.lock":
		return true
	default:
		return false
	}
}

// checkYAML rejects a text that has more values than any release.
func checkYAML(text string) error {
	size := strings.Count(text, "\n") + strings.Count(text, ",") + strings.Count(text, "[") + strings.Count(text, "{") + strings.Count(text, "- ")
	if size > maxYAMLSize {
		return fmt.Errorf("it has more than %d values", maxYAMLSize)
	}
	return nil
}
