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

// statement is what a provenance file says, in two YAML documents: the chart's metadata, and digests of files.
type statement struct {
	Name    string            `yaml:"name"`
	Version string            `yaml:"version"`
	Files   map[string]string `yaml:"files"`
}

// checkProvenance makes sure that a provenance file is signed by a key of ours and speaks of this chart, in this version, with this
// content. Without the version, an old chart could be passed off as a new one.
func checkProvenance(file []byte, r *reference, resolved Resolved) error {
	block, _ := clearsign.Decode(file)
	if block == nil {
		return fmt.Errorf("%w: the provenance file is not signed text", ErrUnverified)
	}
	ring, err := keyring(r.Verify.Keys)
	if err != nil {
		return err
	}
	if _, err := block.VerifySignature(ring, nil); err != nil {
		return fmt.Errorf("%w: the provenance file is not signed by any key of %s", ErrUnverified, names(r.Verify.Keys))
	}
	said, err := parseStatement(block.Plaintext)
	if err != nil {
		return err
	}
	if said.Name != path.Base(r.Name) || !sameVersion(said.Version, resolved.Version) {
		return fmt.Errorf("%w: the provenance file is about %s %s", ErrUnverified, said.Name, said.Version)
	}
	for _, digest := range said.Files {
		if digest == resolved.Digest {
			return nil
		}
	}
	return fmt.Errorf("%w: the archive is not the one that the provenance file was made for", ErrUnverified)
}

// sameVersion is for versions that are numbers: a tag may be any word, and its content is what the digest says.
func sameVersion(said, wanted string) bool {
	return !isExact(wanted) || strings.TrimPrefix(said, "v") == strings.TrimPrefix(wanted, "v")
}

// keyring has the keys of all, in the binary form of gpg --export or in its armoured one.
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
	var said, sums statement
	if !found || yaml.Unmarshal(metadata, &said) != nil || yaml.Unmarshal(files, &sums) != nil {
		return statement{}, fmt.Errorf("%w: the provenance file can't be read", ErrUnverified)
	}
	said.Files = sums.Files
	return said, nil
}
