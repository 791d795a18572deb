package git

import (
	"fmt"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
)

// Snapshot is a commit with its files, in memory. It never changes.
type Snapshot struct {
	// Commit is the ID of the branch's newest commit, or "" if the branch doesn't exist. In that
	// case the files are those that a new branch starts with: those of the default branch, or none.
	Commit string
	// Empty is set if the repository has no branch at all.
	Empty bool

	// base is the parent of the next commit, zero in an empty repository.
	base    plumbing.Hash
	root    plumbing.Hash
	objects *memory.Storage
	limits  Limits
	info    object.Signature
}

// FS returns the files, which are read only. It contains regular files and directories: symbolic
// links and submodules are left out.
func (s *Snapshot) FS() fs.FS {
	return &tree{objects: s.objects, root: s.root, max: s.limits.File, changed: s.info.When}
}

// open reads the commit and counts its files.
func (s *Snapshot) open() error {
	commit, err := object.GetCommit(s.objects, s.base)
	if err != nil {
		return missing(err)
	}
	s.root, s.info = commit.TreeHash, commit.Committer
	files, err := s.count(commit.TreeHash, map[plumbing.Hash]int{})
	if err != nil {
		return err
	}
	if files > s.limits.Files {
		return &TooLargeError{What: fmt.Sprintf("it has more than %d files", s.limits.Files), Limit: int64(s.limits.Files)}
	}
	return nil
}

// count returns the number of files below a directory, or a number above the limit. A directory
// may occur many times, as may the ones in it, so each is counted once and the sum ends early.
func (s *Snapshot) count(at plumbing.Hash, known map[plumbing.Hash]int) (int, error) {
	if n, ok := known[at]; ok {
		return n, nil
	}
	directory, err := object.GetTree(s.objects, at)
	if err != nil {
		return 0, missing(err)
	}
	total := 0
	for _, entry := range directory.Entries {
		n := 1
		if entry.Mode == filemode.Dir {
			if n, err = s.count(entry.Hash, known); err != nil {
				return 0, err
			}
		}
		if total += n; total > s.limits.Files {
			break
		}
	}
	known[at] = total
	return total, nil
}
