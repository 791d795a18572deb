package artifact

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// staleFor times ResolveEvery is how long an answer is used while the source is unreachable, and
// ResolveEvery divided by retryPart is the interval of retries.
const (
	staleFor  = 6
	retryPart = 10
)

// answer is the result of resolving a Ref.
type answer struct {
	resolved Resolved
	at       time.Time
	// failed is the time of the last failed retry.
	failed time.Time
}

// resolve resolves a Ref at one location, without mirrors.
func (s *Store) resolve(ctx context.Context, ref Ref) (Resolved, error) {
	r, err := parse(trusting(s.options.Trust, ref))
	if err != nil {
		return Resolved{}, err
	}
	if known, ok := s.known(r); ok {
		return known, nil
	}
	resolved, err := share(ctx, s, "resolve "+r.key, func(ctx context.Context) (Resolved, error) { return s.renew(ctx, r) })
	if err != nil {
		return Resolved{}, fmt.Errorf("resolving %s: %w", r, err)
	}
	return resolved, nil
}

// known returns a cached answer that needs no request.
func (s *Store) known(r *reference) (Resolved, bool) {
	found, ok := s.answers.Get(r.key)
	if !ok {
		return Resolved{}, false
	}
	a, now := found.(answer), s.options.Clock.Now()
	switch {
	case isFinal(r.Version), now.Sub(a.at) < s.options.ResolveEvery:
		return a.resolved, true
	default:
		return a.resolved, s.usable(a) && now.Sub(a.failed) < s.options.ResolveEvery/retryPart
	}
}

// usable reports whether an answer may be used while the source is unreachable.
func (s *Store) usable(a answer) bool {
	return s.options.Clock.Since(a.at) < staleFor*s.options.ResolveEvery
}

func (s *Store) renew(ctx context.Context, r *reference) (Resolved, error) {
	if known, ok := s.known(r); ok { // another caller was faster
		return known, nil
	}
	resolved, at, err := s.source(r).resolve(ctx, r)
	if err == nil && resolved.Digest == "" {
		resolved.Digest, err = s.digestByDownload(ctx, r, resolved)
	}
	switch {
	case err == nil:
		s.answers.Add(r.key, answer{resolved: resolved, at: at})
		return resolved, nil
	case isAnswer(err):
		s.answers.Remove(r.key)
		return Resolved{}, err
	}
	if found, ok := s.answers.Get(r.key); ok && s.usable(found.(answer)) {
		a := found.(answer)
		a.failed = s.options.Clock.Now()
		s.answers.Add(r.key, a)
		s.counts.staleAnswers.Add(1)
		return a.resolved, nil
	}
	return Resolved{}, err
}

// isAnswer reports whether an error is a response of the source, which was reachable.
func isAnswer(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) || errors.Is(err, ErrInvalid)
}

// digestByDownload returns the digest of a version for indexes without digests. It downloads each
// version once.
func (s *Store) digestByDownload(ctx context.Context, r *reference, resolved Resolved) (string, error) {
	key := digestOf(r.place, r.Name, "exactly", resolved.Version)
	if found, ok := s.answers.Get(key); ok {
		return found.(answer).resolved.Digest, nil
	}
	data, err := s.source(r).download(ctx, r, resolved)
	if err != nil {
		return "", err
	}
	s.counts.downloaded(data)
	resolved.Digest = contentDigest(data)
	s.keep(resolved.Digest, data)
	s.answers.Add(key, answer{resolved: resolved})
	return resolved.Digest, nil
}

func (s *Store) source(r *reference) source {
	if r.oci {
		return s.registries
	}
	return s.repositories
}

// forget drops an answer, because the source no longer has this content.
func (s *Store) forget(r *reference, resolved Resolved) {
	s.answers.Remove(r.key)
	s.answers.Remove(digestOf(r.place, r.Name, "exactly", resolved.Version))
}
