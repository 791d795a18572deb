package helm

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// Limits of charts. The manager keeps the content of a chart in memory, and parsers of YAML take a
// hundred times the memory of a text that consists of nothing but structure.
const (
	maxUnpacked = 64 << 20
	maxMetadata = 2 << 20
	maxNested   = 8
)

// chartContent is what was found in an archive, and in archives in it.
type chartContent struct {
	unpacked int64
	// metadata is the text that is parsed when the chart is loaded.
	metadata bytes.Buffer
}

// checkArchive reads an archive, and archives in it, without keeping anything, and returns an error
// if its content exceeds the limits.
func checkArchive(archive []byte) error {
	var c chartContent
	if err := c.add(bytes.NewReader(archive), maxNested); err != nil {
		return err
	}
	return safeyaml.CheckValues(c.metadata.Bytes())
}

var (
	errChartTooLarge = fmt.Errorf("content is larger than %d MiB, or its values and metadata than %d MiB", maxUnpacked>>20, maxMetadata>>20)
	errChartTooDeep  = errors.New("charts are nested too deeply")
)

func (c *chartContent) add(archive io.Reader, nested int) error {
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
		if err := c.addFile(file, files, nested); err != nil {
			return fmt.Errorf("reading %q: %w", file.Name, err)
		}
	}
}

func (c *chartContent) addFile(file *tar.Header, content io.Reader, nested int) error {
	if c.unpacked += file.Size; c.unpacked > maxUnpacked {
		return errChartTooLarge
	}
	name, depth := innermost(cleanName(file.Name))
	switch {
	case depth >= nested:
		return errChartTooDeep
	case isMetadata(name):
		return c.addMetadata(content)
	case strings.HasPrefix(name, "charts/") && path.Ext(name) == ".tgz":
		return c.add(content, nested-depth-1)
	}
	return nil
}

// cleanName returns the path of a file below the directory of the chart. It changes names as Helm
// does, which accepts those of Windows.
func cleanName(name string) string {
	if strings.Contains(name, `\`) {
		_, name, _ = strings.Cut(name, `\`)
		name = strings.ReplaceAll(name, `\`, "/")
	} else {
		_, name, _ = strings.Cut(name, "/")
	}
	return path.Clean(name)
}

// innermost returns the path of a file in the chart that it belongs to, which may be nested in
// directories of other charts, and how deeply.
func innermost(name string) (string, int) {
	for depth := 0; ; depth++ {
		inside, nested := strings.CutPrefix(name, "charts/")
		_, inside, found := strings.Cut(inside, "/")
		if !nested || !found {
			return name, depth
		}
		name = inside
	}
}

// isMetadata reports whether a file is parsed when a chart is loaded.
func isMetadata(name string) bool {
	switch name {
	case "Chart.yaml", "Chart.lock", "values.yaml", "requirements.yaml", "requirements.lock":
		return true
	default:
		return false
	}
}

// addMetadata reads a file, and checks each document in it as Helm parses it.
func (c *chartContent) addMetadata(content io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(content, maxMetadata+1))
	if err != nil {
		return err
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // Helm removes it, too.
	c.metadata.Write(text)
	if c.metadata.Len() > maxMetadata {
		return errChartTooLarge
	}
	if err := safeyaml.Check(text); err != nil || !bytes.Contains(text, []byte("---")) {
		return err
	}
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if err != nil {
			return nil //nolint:nilerr // Helm reports what can't be read.
		}
		if err := safeyaml.Check(document); err != nil {
			return err
		}
	}
}
