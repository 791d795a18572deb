package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"
)

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// Result is what an Update did.
type Result struct {
	// Commit is the branch's newest commit: the one of the update, or the one that it found if
	// nothing changed. It is "" if nothing changed and the branch doesn't exist.
	Commit string
	// Changed is set if the update pushed a commit.
	Changed bool
	// Attempts counts the calls of the edit function.
	Attempts int
}

// Edit returns the files to change, by their paths. A nil content removes a file. It is called
// again with the new files when somebody else changed the branch in between, so it must derive its
// result from the files it is given.
type Edit func(files fs.FS) (map[string][]byte, error)

// Update commits what an edit changes and pushes it. The push succeeds only if the branch is still
// what the edit was given; otherwise the edit is repeated. A lost answer doesn't lead to a second
// commit: Update first finds out whether the push succeeded. Nothing is pushed if nothing changes.
//
// A branch that doesn't exist is created. It starts from the default branch.
func (r *Repository) Update(ctx context.Context, m Message, edit Edit) (Result, error) {
	message, err := m.render()
	if err != nil {
		return Result{}, err
	}
	u := &update{Repository: r, message: message, edit: edit}
	for u.attempt = 1; u.attempt <= r.options.Attempts; u.attempt++ {
		result, err := u.try(ctx)
		if !errors.Is(err, errAgain) {
			return result, err
		}
		if err := r.pause(ctx, u.attempt); err != nil {
			return Result{}, err
		}
	}
	if u.rejected != nil {
		return Result{}, u.rejected
	}
	return Result{}, &ConflictError{failure: r.failure(nil), Branch: r.remote.Branch, Attempts: r.options.Attempts}
}

// errAgain means that the branch changed, or may have.
var errAgain = errors.New("the branch changed")

// update is the state of one call of Update.
type update struct {
	*Repository

	message string
	edit    Edit
	attempt int
	// rejected is what the server said to the previous push, on top of rejectedOn.
	rejected   error
	rejectedOn string
}

func (u *update) try(ctx context.Context) (Result, error) {
	tip, err := u.Tip(ctx)
	if err != nil {
		return Result{}, err
	}
	files, err := u.edit(tip.FS())
	if err != nil {
		return Result{}, err
	}
	changes, err := changesOf(files, u.options.Limits)
	if err != nil {
		return Result{}, err
	}
	c, err := u.prepare(tip, u.message, changes)
	if err != nil {
		return Result{}, fmt.Errorf("changing repository %q: %w", u.remote.URL, err)
	}
	if c == nil {
		return Result{Commit: tip.Commit, Attempts: u.attempt}, nil
	}
	if err := u.land(ctx, c); err != nil {
		return Result{}, err
	}
	return Result{Commit: c.hash.String(), Changed: true, Attempts: u.attempt}, nil
}

// land pushes a commit and finds out what became of it. The text of an error says too little for
// that: the branch decides.
func (u *update) land(ctx context.Context, c *commit) error {
	said, err := u.push(ctx, c)
	if said != nil && said.rejected == nil {
		return nil
	}
	found, lost := u.fateOf(ctx, c, said)
	switch {
	case lost != nil:
		return u.unknown(ctx, c, err)
	case found == landed:
		return nil
	case found == overtaken:
		u.rejected = nil
		return errAgain
	case said == nil:
		return u.explain(ctx, err)
	}
	return u.reject(c, said.rejected)
}

// reject confirms a rejection by a second push before it is final: a concurrent push holds a lock
// for a moment in which the branch hasn't moved yet.
func (u *update) reject(c *commit, reason error) error {
	err := &RejectedError{failure: u.failure(reason), Branch: u.remote.Branch}
	if u.rejected != nil && u.rejectedOn == c.old.String() {
		return err
	}
	u.rejected, u.rejectedOn = err, c.old.String()
	return errAgain
}

// unknown returns the error for a commit that may or may not have landed.
func (u *update) unknown(ctx context.Context, c *commit, reason error) error {
	if ctx.Err() != nil {
		reason = context.Cause(ctx)
	}
	return &UnreachableError{failure: u.failure(reason), Commit: c.hash.String()}
}

// pause waits before the next attempt, longer each time and never as long as other writers.
func (r *Repository) pause(ctx context.Context, attempt int) error {
	d := min(maxPause, firstPause<<min(attempt-1, 10))
	d = d/2 + rand.N(d) //nolint:gosec // not a secret
	timer := r.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("waiting to push to repository %q: %w", r.remote.URL, context.Cause(ctx))
	case <-timer.C():
		return nil
	}
}
