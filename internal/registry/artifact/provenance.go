package artifact

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"go.yaml.in/yaml/v3"
)

// statement is the content of a provenance file: the metadata of the chart and the digests of
// files, in two YAML documents.
type statement struct {
	Name    string            `yaml:"name"`
	Version string            `yaml:"version"`
	Files   map[string]string `yaml:"files"`
}

// checkProvenance checks that a provenance file is signed with one of the keys for the name, the
// version and the content of the chart. Without the version, an old chart could replace a new one.
func checkProvenance(file []byte, r *reference, resolved Resolved) error {
	block, _ := clearsign.Decode(file)
	if block == nil {
		return fmt.Errorf("%w: the provenance file is not signed", ErrUnverified)
	}
	ring, err := keyring(r.Verify.Keys)
	if err != nil {
		return err
	}
	if _, err := block.VerifySignature(ring, nil); err != nil {
		return fmt.Errorf("%w: the provenance file is not signed by any key of %s", ErrUnverified, names(r.Verify.Keys))
	}
	claim, err := parseStatement(block.Plaintext)
	if err != nil {
		return err
	}
	if claim.Name != path.Base(r.Name) || !sameVersion(claim.Version, resolved.Version) {
		return fmt.Errorf("%w: the provenance file is for %s %s", ErrUnverified, claim.Name, claim.Version)
	}
	for _, digest := range claim.Files {
		if digest == resolved.Digest {
			return nil
		}
	}
	return fmt.Errorf("%w: the provenance file is for another archive", ErrUnverified)
}

// sameVersion compares exact versions. A tag may have any name; its content is verified by digest.
func sameVersion(claim, wanted string) bool {
	return !isExact(wanted) || strings.TrimPrefix(claim, "v") == strings.TrimPrefix(wanted, "v")
}

// keyring returns all keys, which are in the binary or armored format of gpg --export.
func keyring(keys map[string][]byte) (openpgp.EntityList, error) {
	var all openpgp.EntityList
	for name, data := range keys {
		ring, err := openpgp.ReadKeyRing(bytes.NewReader(data))
		if err != nil || len(ring) == 0 {
			ring, err = openpgp.ReadArmoredKeyRing(bytes.NewReader(data))
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %q is not a keyring", ErrInvalid, name)
		}
		all = append(all, ring...)
	}
	return all, nil
}

func parseStatement(text []byte) (statement, error) {
	metadata, files, found := bytes.Cut(text, []byte("\n...\n"))
	var claim, sums statement
	if !found || yaml.Unmarshal(metadata, &claim) != nil || yaml.Unmarshal(files, &sums) != nil {
		return statement{}, fmt.Errorf("%w: the provenance file is invalid", ErrUnverified)
	}
	claim.Files = sums.Files
	return claim, nil
}
