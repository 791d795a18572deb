package git

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
)

const (
	// searched is how many commits others may have pushed on top of one whose answer was lost.
	searched = 64
	// readings is how often the branch is read to find out what became of a push.
	readings = 4
)

// fate is what became of a commit.
type fate int

const (
	// unmoved means that the branch is what it was before the push.
	unmoved fate = iota
	// landed means that the commit is in the branch.
	landed
	// overtaken means that the branch has commits of others instead.
	overtaken
)

// fateOf reads the branch after a push that wasn't confirmed.
func (r *Repository) fateOf(ctx context.Context, c *commit, said *verdict) (fate, error) {
	for attempt := 1; ; attempt++ {
		found, err := r.locate(ctx, c, said)
		if err == nil || ctx.Err() != nil || attempt == readings {
			return found, err
		}
		if err := r.pause(ctx, attempt); err != nil {
			return unmoved, err
		}
	}
}

// locate reads the branch once. A commit can be below those of others only if the server didn't say
// that it rejected the commit.
func (r *Repository) locate(ctx context.Context, c *commit, said *verdict) (fate, error) {
	tip, err := r.TipID(ctx)
	switch {
	case err != nil:
		return unmoved, err
	case tip == c.hash.String():
		return landed, nil
	case tip == commitID(c.old):
		return unmoved, nil
	case said != nil || tip == "":
		return overtaken, nil
	}
	if found, err := r.contains(ctx, c.hash); err != nil || found {
		return landed, err
	}
	return overtaken, nil
}

// contains reports whether a commit is among the newest of the branch.
func (r *Repository) contains(ctx context.Context, commit plumbing.Hash) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Limits.Timeout)
	defer cancel()
	session, err := r.wire.upload(ctx)
	if err != nil {
		return false, err
	}
	defer session.Close()
	refs, all, err := r.discover(ctx, session)
	if err != nil || refs.tip.IsZero() {
		return false, err
	}
	objects := memory.NewStorage()
	if err := r.fetch(ctx, session, newRequest(all, refs.tip, searched), objects); err != nil {
		return false, err
	}
	_, err = object.GetCommit(objects, commit)
	return err == nil, nil
}
