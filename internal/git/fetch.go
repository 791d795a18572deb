package git

import (
	"context"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/memory"
)

// Tip fetches the branch's newest commit into memory.
func (r *Repository) Tip(ctx context.Context) (*Snapshot, error) {
	limited, cancel := context.WithTimeout(ctx, r.options.Limits.Timeout)
	defer cancel()
	s, err := r.tip(limited)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return s, nil
}

func (r *Repository) tip(ctx context.Context) (*Snapshot, error) {
	session, err := r.wire.upload(ctx)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	refs, all, err := r.discover(ctx, session)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Commit: commitID(refs.tip), Empty: refs.empty, base: refs.tip, objects: memory.NewStorage(), limits: r.options.Limits}
	if s.base.IsZero() {
		s.base = refs.start
	}
	if s.base.IsZero() {
		return s, nil
	}
	request := newRequest(all, s.base, 1)
	if err := r.fetch(ctx, session, request, s.objects); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// newRequest asks for a commit and its ancestors down to a depth.
func newRequest(all *packp.AdvRefs, commit plumbing.Hash, depth int) *packp.UploadPackRequest {
	request := packp.NewUploadPackRequestFromCapabilities(all.Capabilities)
	if all.Capabilities.Supports(capability.Shallow) {
		_ = request.Capabilities.Set(capability.Shallow)
		request.Depth = packp.DepthCommits(depth)
	}
	if all.Capabilities.Supports(capability.NoProgress) {
		_ = request.Capabilities.Set(capability.NoProgress)
	}
	request.Wants = []plumbing.Hash{commit}
	return request
}

func (r *Repository) fetch(ctx context.Context, s transport.UploadPackSession, request *packp.UploadPackRequest, to *memory.Storage) error {
	response, err := s.UploadPack(ctx, request)
	if err != nil {
		return err
	}
	defer response.Close()
	limits := r.options.Limits
	most := limits.Fetch + packOverhead
	pack, err := io.ReadAll(io.LimitReader(demux(request.Capabilities, response, nil), most+1))
	if err != nil {
		return err
	}
	if int64(len(pack)) > most {
		return &TooLargeError{What: fmt.Sprintf("its files have more than %d bytes", limits.Fetch), Limit: limits.Fetch}
	}
	return unpack(pack, to, limits)
}

// demux separates data from messages for people, which go to progress.
func demux(c *capability.List, from io.Reader, progress io.Writer) io.Reader {
	kind := sideband.Sideband64k
	switch {
	case c.Supports(capability.Sideband64k):
	case c.Supports(capability.Sideband):
		kind = sideband.Sideband
	default:
		return from
	}
	d := sideband.NewDemuxer(kind, from)
	d.Progress = progress
	return d
}
