package git

import (
	"bytes"
	"context"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
)

// CheckPush checks that the credentials may push to the branch, and changes nothing: it pushes the
// commit that the branch has already. A server treats that as every other push, with the rules of
// protected branches and with its hooks. If the branch doesn't exist, only access to the repository
// is checked.
func (r *Repository) CheckPush(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		tip, err := r.TipID(ctx)
		if err != nil {
			return err
		}
		err = r.pushAgain(ctx, tip)
		if err == nil || attempt == readings {
			return err
		}
		// Somebody else may have pushed in between.
		if now, tipErr := r.TipID(ctx); tipErr != nil || now == tip {
			return err
		}
	}
}

// pushAgain pushes what the branch has.
func (r *Repository) pushAgain(ctx context.Context, tip string) error {
	if tip == "" {
		return r.checkReceive(ctx)
	}
	var pack bytes.Buffer
	if _, err := packfile.NewEncoder(&pack, memory.NewStorage(), false).Encode(nil, 0); err != nil {
		return err
	}
	same := plumbing.NewHash(tip)
	said, err := r.push(ctx, &commit{hash: same, old: same, pack: pack.Bytes()})
	switch {
	case said == nil:
		return r.explain(ctx, err)
	case said.rejected != nil:
		return &RejectedError{failure: r.failure(said.rejected), Branch: r.remote.Branch}
	}
	return nil
}

// checkReceive checks that the server accepts pushes from the owner of the credentials at all.
func (r *Repository) checkReceive(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, r.options.Limits.Timeout)
	defer cancel()
	session, err := r.wire.receive(limited)
	if err != nil {
		return r.explain(ctx, err)
	}
	defer session.Close()
	if _, _, err = r.discover(limited, session); err != nil {
		return r.explain(ctx, err)
	}
	return nil
}
