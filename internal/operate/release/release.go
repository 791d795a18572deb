// Package release knows the files of a Drover release, which `make release` writes and
// `drover verify` checks:
//
//	drover_v0.1.0_linux_amd64.tar.gz             drover, clusterctl and Flux, one archive per platform
//	drover_v0.1.0_linux_amd64.tar.gz.spdx.json   what they were built from (SPDX 2.3)
//	provider-components.yaml                     the manager for any cluster
//	provenance.intoto.json                       who built what from which commit, in a DSSE envelope
//	SHA256SUMS                                   checksums of all files above
//	SHA256SUMS.sig                               its signature, as cosign sign-blob writes it
//
// Keys are ECDSA P-256, like those of bundles. The package reads and writes only files of a
// release; hack/release builds them. Start at [Verify] and [Sign].
package release

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names of the files that describe the others.
const (
	Checksums  = "SHA256SUMS"
	Signature  = Checksums + ".sig"
	Provenance = "provenance.intoto.json"
)

// maxDescription bounds the files that are read before their signature is verified.
const maxDescription = 1 << 20

// Checksum is the digest of one file of a release.
type Checksum struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Sum computes the checksum of a file.
func Sum(path string) (Checksum, error) {
	f, err := os.Open(path)
	if err != nil {
		return Checksum{}, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return Checksum{}, fmt.Errorf("reading %q: %w", path, err)
	}
	return Checksum{Name: filepath.Base(path), SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

// formatChecksums writes checksums in the format of sha256sum, sorted by name.
func formatChecksums(sums []Checksum) []byte {
	sorted := slices.SortedFunc(slices.Values(sums), func(a, b Checksum) int { return strings.Compare(a.Name, b.Name) })
	var text []byte
	for _, s := range sorted {
		text = fmt.Appendf(text, "%s  %s\n", s.SHA256, s.Name)
	}
	return text
}

// parseChecksums parses what formatChecksums writes. A name is never a path, and occurs once.
func parseChecksums(text string) ([]Checksum, error) {
	var sums []Checksum
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		digest, name, ok := strings.Cut(lines.Text(), "  ")
		raw, err := hex.DecodeString(digest)
		if !ok || err != nil || len(raw) != sha256.Size || !isName(name) {
			return nil, fmt.Errorf("line %d is not a checksum and a file name", n)
		}
		if slices.ContainsFunc(sums, func(s Checksum) bool { return s.Name == name }) {
			return nil, fmt.Errorf("line %d lists %q again", n, name)
		}
		sums = append(sums, Checksum{Name: name, SHA256: strings.ToLower(digest)})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(sums) == 0 {
		return nil, errors.New("no checksums found")
	}
	return sums, nil
}

func isName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\\x00")
}

// readDescription reads a file that is not trusted yet.
func readDescription(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDescription+1))
	if err == nil && len(text) > maxDescription {
		err = fmt.Errorf("larger than %d bytes", maxDescription)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, err)
	}
	return text, nil
}
