package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// ErrNoCheckout means that a directory doesn't belong to a checkout of a repository.
var ErrNoCheckout = errors.New("not a checkout of a Git repository")

// Checkout is a local checkout of a repository. It is only read.
type Checkout struct {
	// Root is the topmost directory of the checkout.
	Root string

	repository *gogit.Repository
}

// OpenCheckout opens the checkout that a directory is in, or returns ErrNoCheckout.
func OpenCheckout(dir string) (*Checkout, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", dir, err)
	}
	if _, err := os.Stat(absolute); err != nil {
		return nil, fmt.Errorf("opening %q: %w", dir, err)
	}
	repository, err := gogit.PlainOpenWithOptions(absolute, &gogit.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if errors.Is(err, gogit.ErrRepositoryNotExists) {
		return nil, fmt.Errorf("opening %q: %w", dir, ErrNoCheckout)
	}
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", dir, err)
	}
	files, err := repository.Worktree()
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", dir, err)
	}
	return &Checkout{Root: files.Filesystem.Root(), repository: repository}, nil
}

// Files returns the files in the working directory, committed or not.
func (c *Checkout) Files() fs.FS { return os.DirFS(c.Root) }

// At returns the files of a revision, such as HEAD, a branch, a tag or the ID of a commit.
func (c *Checkout) At(revision string) (fs.FS, error) {
	id, err := c.repository.ResolveRevision(plumbing.Revision(revision))
	if err != nil {
		return nil, fmt.Errorf("finding revision %q in %q: %w", revision, c.Root, err)
	}
	commit, err := c.repository.CommitObject(*id)
	if err != nil {
		return nil, fmt.Errorf("reading revision %q in %q: %w", revision, c.Root, err)
	}
	return &tree{objects: c.repository.Storer, root: commit.TreeHash, max: defaultFile, changed: commit.Committer.When}, nil
}
