package release

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/registry/bundle"
)

// Verified describes a file whose signature, checksum and provenance are valid.
type Verified struct {
	Checksum `json:",inline"`
	// Key is the name of the key that signed it.
	Key string `json:"key"`
	// Source is empty for the provenance itself.
	Source Source `json:"source,omitzero"`
}

// Verify verifies that one of the keys signed a file of a release. It reads checksums, signature
// and provenance from the file's directory.
func Verify(path string, keys bundle.Keys) (Verified, error) {
	v, err := verify(path, keys)
	if err != nil {
		return Verified{}, fmt.Errorf("verifying %q: %w", path, err)
	}
	return v, nil
}

func verify(path string, keys bundle.Keys) (Verified, error) {
	dir := filepath.Dir(path)
	sums, key, err := verifyChecksums(dir, keys)
	if err != nil {
		return Verified{}, err
	}
	sum, err := Sum(path)
	if err != nil {
		return Verified{}, err
	}
	v := Verified{Checksum: sum, Key: key.Name}
	if err := listed(sum, sums); err != nil || sum.Name == Provenance {
		return v, err
	}
	text, err := readDescription(filepath.Join(dir, Provenance))
	if err != nil {
		return Verified{}, missing(err)
	}
	if v.Source, err = verifyProvenance(text, sum, keys); err != nil {
		return Verified{}, fmt.Errorf("%s: %w", Provenance, err)
	}
	return v, nil
}

// verifyChecksums returns the checksums of a release if one of the keys signed them.
func verifyChecksums(dir string, keys bundle.Keys) ([]Checksum, bundle.Key, error) {
	text, err := readDescription(filepath.Join(dir, Checksums))
	if err != nil {
		return nil, bundle.Key{}, missing(err)
	}
	encoded, err := readDescription(filepath.Join(dir, Signature))
	if err != nil {
		return nil, bundle.Key{}, missing(err)
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(encoded)))
	if err != nil {
		return nil, bundle.Key{}, fmt.Errorf("%s is not base64: %w", Signature, err)
	}
	key, ok := keys.SignerOf(text, signature)
	if !ok {
		return nil, bundle.Key{}, fmt.Errorf("%s is not signed with a trusted key", Checksums)
	}
	sums, err := parseChecksums(string(text))
	if err != nil {
		return nil, bundle.Key{}, fmt.Errorf("%s: %w", Checksums, err)
	}
	return sums, key, nil
}

// listed checks a file's checksum against the signed ones.
func listed(sum Checksum, sums []Checksum) error {
	i := slices.IndexFunc(sums, func(s Checksum) bool { return s.Name == sum.Name })
	switch {
	case i < 0:
		return fmt.Errorf("%s does not list it; the file must have its original name", Checksums)
	case sums[i].SHA256 != sum.SHA256:
		return fmt.Errorf("its sha256 is %s, but %s lists %s; download it again", sum.SHA256, Checksums, sums[i].SHA256)
	}
	return nil
}

// missing explains that a file of the release is not beside the verified one.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w\nTry: download %s, %s and %s of the same release into the same directory", err, Checksums, Signature, Provenance)
	}
	return err
}
