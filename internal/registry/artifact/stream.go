package artifact

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Limits of an index. Parsers of YAML take up to a hundred times the memory of the text, so that no
// more than one version of a package is parsed at a time.
const (
	// maxWhole is the size of an index that is parsed as a whole, whatever its layout.
	maxWhole = 512 << 10
	// maxItem is the size of a version of a package.
	maxItem = 512 << 10
	// maxVersions is the number of versions, including invalid ones.
	maxVersions = 200_000
	// maxKept is the size of what is kept of an index.
	maxKept = 32 << 20
)

// readIndex parses an index in YAML or JSON as it arrives.
func readIndex(from io.Reader) (index, error) {
	head, err := io.ReadAll(io.LimitReader(from, maxWhole+1))
	if err != nil {
		return nil, tooLarge(err)
	}
	if len(head) <= maxWhole {
		return parseIndex(head)
	}
	s := &indexStream{index: index{}}
	text := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(head), from), 64<<10)
	if content := bytes.TrimSpace(head); len(content) > 0 && content[0] == '{' {
		err = s.readJSON(text)
	} else {
		err = s.readYAML(text)
	}
	if err != nil {
		return nil, err
	}
	return s.index, nil
}

// indexStream collects what is kept of an index.
type indexStream struct {
	index    index
	versions int
	kept     int
}

func (s *indexStream) add(name string, versions []*indexEntry) error {
	s.versions++
	for _, v := range versions {
		if v == nil {
			continue
		}
		s.kept += len(name) + len(v.Version) + len(v.Digest) + 64
		for _, u := range v.URLs {
			s.kept += len(u) + 16
		}
	}
	if s.kept > maxKept || s.versions > maxVersions {
		return fmt.Errorf("%w: the index has too many versions", ErrInvalid)
	}
	s.index.add(map[string][]*indexEntry{name: versions})
	return nil
}

// readYAML reads an index in the layout of Helm. See cut for the layout.
func (s *indexStream) readYAML(from *bufio.Reader) error {
	y := &yamlStream{indexStream: s, indent: -1, dash: -1}
	for {
		line, err := readLine(from)
		if len(line) > 0 {
			if more := y.line(line); more != nil {
				return more
			}
		}
		if errors.Is(err, io.EOF) {
			return y.finish()
		}
		if err != nil {
			return tooLarge(err)
		}
	}
}

// readLine reads a line of limited length.
func readLine(from *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := from.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxItem {
			return nil, fmt.Errorf("%w: the index has a line of more than %d bytes", ErrInvalid, maxItem)
		}
	}
}

// yamlStream cuts the lines of an index into versions.
type yamlStream struct {
	*indexStream

	inside, done bool
	// indent is the indentation of names, and dash that of versions.
	indent, dash int
	name         []byte
	item         []byte
}

// role is what a line of the entries is for.
type role int

const (
	roleNone role = iota
	roleText
	roleName
	roleVersion
	roleEnd
)

func (y *yamlStream) line(line []byte) error {
	content := bytes.TrimSpace(line)
	depth := len(line) - len(bytes.TrimLeft(line, " "))
	if y.done || !y.inside {
		y.inside = y.inside || depth == 0 && string(content) == "entries:"
		return nil
	}
	switch y.role(content, depth) {
	case roleNone:
		return nil
	case roleEnd:
		y.done = true
		return y.flush()
	case roleName:
		return y.begin(line, depth)
	case roleVersion:
		if err := y.flush(); err != nil {
			return err
		}
		y.dash = depth
	case roleText:
		if y.dash < 0 {
			return fmt.Errorf("%w: the index is too large for its layout", ErrInvalid)
		}
	}
	if y.item = append(y.item, line...); len(y.item) > maxItem {
		return fmt.Errorf("%w: the index has a version of more than %d bytes", ErrInvalid, maxItem)
	}
	return nil
}

func (y *yamlStream) role(content []byte, depth int) role {
	blank := len(content) == 0 || content[0] == '#'
	switch {
	case blank && y.item == nil:
		return roleNone
	case blank:
		return roleText
	case depth == 0:
		return roleEnd
	case content[0] == '-' && (y.dash < 0 || depth == y.dash):
		return roleVersion
	case content[0] != '-' && (y.indent < 0 || depth == y.indent):
		return roleName
	default:
		return roleText
	}
}

// begin begins the next package.
func (y *yamlStream) begin(line []byte, depth int) error {
	if err := y.flush(); err != nil {
		return err
	}
	y.indent, y.dash, y.name = depth, -1, bytes.Clone(line)
	return nil
}

// flush parses the version that has been read.
func (y *yamlStream) flush() error {
	if y.item == nil {
		return nil
	}
	var entries map[string][]*indexEntry
	err := yaml.Unmarshal(append(bytes.Clone(y.name), y.item...), &entries)
	y.item = nil
	if err != nil || len(entries) != 1 {
		return fmt.Errorf("%w: parsing the index: a version is invalid", ErrInvalid)
	}
	for name, versions := range entries {
		if err := y.add(name, versions); err != nil {
			return err
		}
	}
	return nil
}

func (y *yamlStream) finish() error {
	if err := y.flush(); err != nil {
		return err
	}
	if !y.inside || y.indent < 0 {
		return fmt.Errorf("%w: the index has no entries, or is too large for its layout", ErrInvalid)
	}
	return nil
}
