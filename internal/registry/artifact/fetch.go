package artifact

import (
	"context"
	"errors"
	"fmt"
)

// fetch downloads from one location, without mirrors.
func (s *Store) fetch(ctx context.Context, ref Ref, resolved Resolved) ([]byte, error) {
	r, err := parse(trusting(s.options.Trust, ref))
	if err != nil {
		return nil, err
	}
	digest, ok := parseDigest(resolved.Digest)
	if !ok || resolved.Version == "" {
		return nil, fmt.Errorf("downloading %s: %w: not resolved", r, ErrInvalid)
	}
	resolved.Digest = digest
	data, err := s.archive(ctx, r, resolved)
	if err == nil && r.Verify != nil {
		err = s.verify(ctx, r, resolved, data)
	}
	if err != nil {
		return nil, fmt.Errorf("downloading %s: %w", r, err)
	}
	return data, nil
}

func (s *Store) archive(ctx context.Context, r *reference, resolved Resolved) ([]byte, error) {
	if data, ok := s.cached(resolved.Digest); ok {
		return data, nil
	}
	// The key includes the place, because others may have no access to it.
	key := digestOf(r.place, r.Name, resolved.Version, resolved.Digest)
	return share(ctx, s, "fetch "+key, func(ctx context.Context) ([]byte, error) {
		if data, ok := s.cached(resolved.Digest); ok { // another caller was faster
			return data, nil
		}
		return s.download(ctx, r, resolved)
	})
}

func (s *Store) download(ctx context.Context, r *reference, resolved Resolved) ([]byte, error) {
	data, err := s.source(r).download(ctx, r, resolved)
	if err == nil {
		s.counts.downloaded(data)
		if got := contentDigest(data); got != resolved.Digest {
			err = fmt.Errorf("%w: its content is %s, not %s", ErrInvalid, got, resolved.Digest)
		}
	}
	if err != nil {
		if errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) {
			s.forget(r, resolved)
		}
		return nil, err
	}
	s.keep(resolved.Digest, data)
	return data, nil
}

func (s *Store) cached(digest string) ([]byte, bool) {
	data, err := s.cache.get(digest)
	if err != nil {
		s.counts.cacheFailures.Add(1)
	}
	if data == nil {
		return nil, false
	}
	s.counts.cacheHits.Add(1)
	return data, true
}

// keep ignores errors: the caller has the content, so a full disk only costs another download.
func (s *Store) keep(digest string, data []byte) {
	if err := s.cache.put(digest, data); err != nil {
		s.counts.cacheFailures.Add(1)
	}
}
