package artifact

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// index contains the versions of an index.yaml and their URLs. The text may be a hundred times as
// large and is not kept.
type index map[string][]entry

// entry is a version of a package.
type entry struct {
	version string
	// digest is empty if the index has none.
	digest string
	// urls may be relative to the repository.
	urls []string
}

// indexFile is the part of an index.yaml that is used.
type indexFile struct {
	Entries map[string][]*indexEntry `json:"entries" yaml:"entries"`
}

type indexEntry struct {
	Version string   `json:"version" yaml:"version"`
	Digest  string   `json:"digest"  yaml:"digest"`
	URLs    []string `json:"urls"    yaml:"urls"`
}

// parseIndex parses an index in YAML or JSON. It skips invalid entries, as Helm does, and ignores
// digests other than sha256.
func parseIndex(text []byte) (index, error) {
	if read := parsePieces(text); read != nil {
		return read, nil
	}
	var file indexFile
	var err error
	if json.Valid(text) { // much faster
		err = json.Unmarshal(text, &file)
	} else {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: parsing the index: %w", ErrInvalid, err)
	}
	if file.Entries == nil {
		return nil, fmt.Errorf("%w: the index has no entries", ErrInvalid)
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

// choose returns the entry of the wanted version.
func (i index) choose(name, version string) (entry, error) {
	entries := i[name]
	if len(entries) == 0 {
		return entry{}, fmt.Errorf("%w: no package with this name", ErrNotFound)
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

// exactly returns the entry with exactly this version.
func (i index) exactly(name, version string) (entry, error) {
	for _, e := range i[name] {
		if e.version == version {
			return e, nil
		}
	}
	return entry{}, fmt.Errorf("%w: version %q", ErrNotFound, version)
}
