package gitops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/drover-dev/drover/internal/git"
	"github.com/drover-dev/drover/internal/model/gitops"
)

// Source is a state of a repository's files.
type Source struct {
	Files fs.FS
	// Path is the directory below which clusters are.
	Path string
}

// Directory returns the files below a local directory, committed or not.
func Directory(dir string) (Source, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return Source{}, fmt.Errorf("reading directory %q: %w", dir, err)
	}
	if !info.IsDir() {
		return Source{}, fmt.Errorf("reading directory %q: it is a file", dir)
	}
	return Source{Files: os.DirFS(dir), Path: "."}, nil
}

// Remote fetches the newest commit of a branch, below a directory.
func Remote(ctx context.Context, remote git.Remote, dir string) (Source, error) {
	repository, err := git.New(remote, git.Options{})
	if err != nil {
		return Source{}, err
	}
	tip, err := repository.Tip(ctx)
	if err != nil {
		return Source{}, err
	}
	if tip.Commit == "" {
		return Source{}, fmt.Errorf("reading branch %q of repository %q: it does not exist", remote.Branch, remote.URL)
	}
	return Source{Files: tip.FS(), Path: dir}, nil
}

// Verdict is what is wrong below a path. Both lists may be empty.
type Verdict struct {
	Problems []gitops.Problem `json:"problems"`
	Secrets  []gitops.Finding `json:"secrets"`
	Clusters int              `json:"clusters"`
}

// Valid reports whether nothing is wrong.
func (v *Verdict) Valid() bool { return len(v.Problems) == 0 && len(v.Secrets) == 0 }

// Check validates every spec of a source, and finds secrets that don't belong into Git.
func Check(s Source) (*Verdict, error) {
	fleet, err := gitops.Read(s.Files, s.Path)
	if err != nil {
		return nil, err
	}
	problems, err := gitops.Validate(s.Files, s.Path)
	if err != nil {
		return nil, err
	}
	secrets, err := gitops.Secrets(s.Files, s.Path)
	if err != nil {
		return nil, err
	}
	return &Verdict{Problems: append([]gitops.Problem{}, problems...), Secrets: append([]gitops.Finding{}, secrets...), Clusters: len(fleet.Clusters)}, nil
}

// Diff compares the files below a directory with a revision of its checkout, or with another
// directory.
func Diff(dir, from string) (*gitops.Report, error) {
	after, err := Directory(dir)
	if err != nil {
		return nil, err
	}
	if before, err := Directory(from); err == nil {
		return gitops.Diff(before.Files, after.Files, ".")
	}
	checkout, err := git.OpenCheckout(dir)
	if errors.Is(err, git.ErrNoCheckout) {
		return nil, fmt.Errorf("comparing with %q: %w, so that it must be a directory", from, err)
	}
	if err != nil {
		return nil, err
	}
	before, err := checkout.At(from)
	if err != nil {
		return nil, err
	}
	below, err := within(checkout.Root, dir)
	if err != nil {
		return nil, err
	}
	return gitops.Diff(before, checkout.Files(), below)
}

// within returns the path of a directory in a checkout.
func within(root, dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err == nil {
		absolute, err = filepath.EvalSymlinks(absolute)
	}
	if err != nil {
		return "", fmt.Errorf("reading directory %q: %w", dir, err)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", err
	}
	relative, err := filepath.Rel(root, absolute)
	if err != nil {
		return "", fmt.Errorf("reading directory %q: %w", dir, err)
	}
	return path.Clean(filepath.ToSlash(relative)), nil
}
