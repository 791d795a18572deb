package release

import (
	"crypto"
	"encoding/base64"
	"fmt"
	"path/filepath"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// Sign writes provenance, checksums and their signature for files of a release, which are in dir.
func Sign(dir string, names []string, source Source, signer crypto.Signer) error {
	sums, err := sumAll(dir, names)
	if err != nil {
		return fmt.Errorf("signing the release: %w", err)
	}
	envelope, err := signProvenance(source, sums, signer)
	if err != nil {
		return fmt.Errorf("signing the provenance: %w", err)
	}
	if err := write(dir, Provenance, append(envelope, '\n')); err != nil {
		return err
	}
	last, err := Sum(filepath.Join(dir, Provenance))
	if err != nil {
		return fmt.Errorf("signing the release: %w", err)
	}
	return signChecksums(dir, append(sums, last), signer)
}

// WriteChecksums writes the checksums of a release that nobody signs.
func WriteChecksums(dir string, names []string) error {
	sums, err := sumAll(dir, names)
	if err != nil {
		return fmt.Errorf("writing checksums: %w", err)
	}
	return write(dir, Checksums, formatChecksums(sums))
}

func signChecksums(dir string, sums []Checksum, signer crypto.Signer) error {
	text := formatChecksums(sums)
	signature, err := bundle.SignText(text, signer)
	if err != nil {
		return fmt.Errorf("signing checksums: %w", err)
	}
	if err := write(dir, Checksums, text); err != nil {
		return err
	}
	return write(dir, Signature, []byte(base64.StdEncoding.EncodeToString(signature)+"\n"))
}

func sumAll(dir string, names []string) ([]Checksum, error) {
	var sums []Checksum
	for _, name := range names {
		sum, err := Sum(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum)
	}
	return sums, nil
}

func write(dir, name string, text []byte) error {
	if err := atomicfile.Write(filepath.Join(dir, name), text, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
