package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"

	"go.yaml.in/yaml/v3"
)

const (
	chartFile    = "Chart.yaml"
	maxChartFile = 1 << 20
	// maxSearched is how much of an archive is searched for its Chart.yaml.
	maxSearched = 128 << 20
)

// checkIdentity checks that a signed archive is the chart and the version that were asked for.
// Signatures of cosign cover digests and no tags, so that a registry could serve an old chart, with
// its signature, as a new version. Archives that are not charts have no version; use their digest.
func checkIdentity(archive []byte, r *reference, resolved Resolved) error {
	if isDigest(r.Version) {
		return nil
	}
	claim, err := readChartFile(archive)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if claim.Name != path.Base(r.Name) || !sameVersion(claim.Version, resolved.Version) {
		return fmt.Errorf("%w: the signed chart is %s %s", ErrUnverified, claim.Name, claim.Version)
	}
	return nil
}

// readChartFile returns the name and the version in the Chart.yaml of a chart.
func readChartFile(archive []byte) (statement, error) {
	var claim statement
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return claim, fmt.Errorf("%w: the archive is not compressed with gzip", ErrInvalid)
	}
	files := tar.NewReader(io.LimitReader(unzipped, maxSearched))
	for {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			return claim, ErrNotFound
		}
		if err != nil {
			return claim, fmt.Errorf("%w: the archive is damaged", ErrInvalid)
		}
		if dir, name := path.Split(path.Clean(file.Name)); name != chartFile || path.Dir(path.Clean(dir)) != "." {
			continue
		}
		text, err := readAll(files, maxChartFile)
		if err != nil || yaml.Unmarshal(text, &claim) != nil {
			return claim, fmt.Errorf("%w: the Chart.yaml of the archive is invalid", ErrInvalid)
		}
		return claim, nil
	}
}
