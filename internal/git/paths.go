package git

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// maxPath is the longest path of a file, in bytes; Linux can't check out a longer one.
const maxPath = 4095

// change is a file to write, or to remove if content is nil.
type change struct {
	path    string
	content []byte
}

// changesOf returns the changes in the order of their paths.
func changesOf(files map[string][]byte, l Limits) ([]change, error) {
	var changes []change
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := checkPath(path); err != nil {
			return nil, err
		}
		content := files[path]
		if int64(len(content)) > l.File {
			return nil, fmt.Errorf("writing %q: %w", path, &FileTooLargeError{Size: int64(len(content)), Limit: l.File})
		}
		changes = append(changes, change{path, content})
	}
	return changes, nil
}

// checkPath rejects paths that lead out of the repository, into Git's own files, or that can't be
// checked out everywhere.
func checkPath(path string) error {
	switch {
	case !fs.ValidPath(path), path == ".", len(path) > maxPath:
		return fmt.Errorf("writing %.200q: not a relative path within the repository", path)
	case strings.ContainsFunc(path, unicode.IsControl), strings.ContainsAny(path, `\:`):
		return fmt.Errorf("writing %.200q: path contains a control character, a backslash or a colon", path)
	}
	for part := range strings.SplitSeq(path, "/") {
		if isReserved(part) {
			return fmt.Errorf("writing %.200q: %q is reserved for Git", path, part)
		}
	}
	return nil
}

// isReserved reports whether a name means .git, on file systems that ignore case, trailing dots and
// spaces, or that shorten names as well.
func isReserved(name string) bool {
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return name == ".git" || strings.HasPrefix(name, "git~")
}
