package git

import (
	"bytes"
	"context"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// commit is a commit that the server doesn't have yet.
type commit struct {
	hash plumbing.Hash
	// old is what the branch must point to when it is pushed, zero if it must not exist.
	old plumbing.Hash
	// pack has the objects of the commit.
	pack []byte
}

// prepare returns the commit that applies changes to a snapshot, or nil if they change nothing.
func (r *Repository) prepare(s *Snapshot, message string, changes []change) (*commit, error) {
	e := &editor{objects: s.objects}
	root, err := e.apply(s.root, changes)
	if err != nil || root == s.root {
		return nil, err
	}
	author := object.Signature{Name: r.options.AuthorName, Email: r.options.AuthorEmail, When: r.options.Clock.Now()}
	o := &object.Commit{Author: author, Committer: author, Message: message, TreeHash: root}
	if !s.base.IsZero() {
		o.ParentHashes = []plumbing.Hash{s.base}
	}
	if err := r.sign.signCommit(o); err != nil {
		return nil, err
	}
	hash, err := e.store(o)
	if err != nil {
		return nil, err
	}
	var pack bytes.Buffer
	if _, err := packfile.NewEncoder(&pack, s.objects, false).Encode(e.created, 0); err != nil {
		return nil, err
	}
	return &commit{hash: hash, old: plumbing.NewHash(s.Commit), pack: pack.Bytes()}, nil
}

// verdict is what a server said about a push. Without a verdict the commit may have landed.
type verdict struct{ rejected error }

// push asks the server to move the branch from what it was to the commit.
func (r *Repository) push(ctx context.Context, c *commit) (*verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Limits.Timeout)
	defer cancel()
	session, err := r.wire.receive(ctx)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	_, all, err := r.discover(ctx, session)
	if err != nil {
		return nil, err
	}
	return r.send(ctx, session, all, c)
}

func (r *Repository) send(ctx context.Context, s transport.ReceivePackSession, all *packp.AdvRefs, c *commit) (*verdict, error) {
	request := packp.NewReferenceUpdateRequest()
	if all != nil {
		request = packp.NewReferenceUpdateRequestFromCapabilities(all.Capabilities)
	}
	messages := &head{max: maxReason}
	if all != nil && all.Capabilities.Supports(capability.Sideband64k) {
		_ = request.Capabilities.Set(capability.Sideband64k)
		request.Progress = messages
	}
	request.Commands = []*packp.Command{{Name: r.remote.reference(), Old: c.old, New: c.hash}}
	request.Packfile = io.NopCloser(bytes.NewReader(c.pack))
	report, err := s.ReceivePack(ctx, request)
	if report == nil {
		return nil, err
	}
	if err != nil {
		err = &serverError{message: messages.String() + " (" + err.Error() + ")", cause: err}
	}
	return &verdict{rejected: err}, nil
}
