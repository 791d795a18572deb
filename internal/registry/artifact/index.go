package artifact

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// index is what is kept of a repository's index.yaml: its versions and where they are. The text, which may be a hundred times as large,
// is not.
type index map[string][]entry

// entry is a version of a package.
type entry struct {
	version string
	// digest is empty if the index has none.
	digest string
	// urls may be relative to the repository.
	urls []string
}

// indexFile is the part of an index.yaml that is of use.
type indexFile struct {
	Entries map[string][]*indexEntry `json:"entries" yaml:"entries"`
}

type indexEntry struct {
	Version string   `json:"version" yaml:"version"`
	Digest  string   `json:"digest"  yaml:"digest"`
	URLs    []string `json:"urls"    yaml:"urls"`
}

// parseIndex reads an index, in YAML or JSON. Entries that can't be used are left out, as Helm does. A digest of another kind than
// sha256 is as good as none.
func parseIndex(text []byte) (index, error) {
	if read := parsePieces(text); read != nil {
		return read, nil
	}
	var file indexFile
	var err error
	if json.Valid(text) { // Much faster.
		err = json.Unmarshal(text, &file)
	} else {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the index can't be read: %w", ErrInvalid, err)
	}
	if file.Entries == nil {
		return nil, fmt.Errorf("%w: there are no entries in the index", ErrInvalid)
	}
	read := make(index, len(file.Entries))
	read.add(file.Entries)
	return read, nil
}

func (i index) add(entries map[string][]*indexEntry) {
	for name, versions := range entries {
		for _, v := range versions {
			if v == nil || v.Version == "" || len(v.URLs) == 0 {
				continue
			}
			digest, _ := parseDigest(v.Digest)
			i[name] = append(i[name], entry{version: v.Version, digest: digest, urls: v.URLs})
		}
	}
}

// choose returns the entry of the version that is wanted.
func (i index) choose(name, version string) (entry, error) {
	entries := i[name]
	if len(entries) == 0 {
		return entry{}, fmt.Errorf("%w: no package has that name", ErrNotFound)
	}
	versions := make([]string, len(entries))
	for n, e := range entries {
		versions[n] = e.version
	}
	chosen, err := choose(version, versions)
	if err != nil {
		return entry{}, err
	}
	return i.exactly(name, chosen)
}

// exactly returns the entry of a version that is written like this.
func (i index) exactly(name, version string) (entry, error) {
	for _, e := range i[name] {
		if e.version == version {
			return e, nil
		}
	}
	return entry{}, fmt.Errorf("%w: there is no version %q", ErrNotFound, version)
}
