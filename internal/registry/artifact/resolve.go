package artifact

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// staleFor is for how many times ResolveEvery an answer is good while nobody can be asked for a newer one, and retryPart which part of
// ResolveEvery goes by between tries to ask.
const (
	staleFor  = 6
	retryPart = 10
)

// answer is what a Ref stood for at a time.
type answer struct {
	resolved Resolved
	at       time.Time
	// failed is when it was last asked for in vain.
	failed time.Time
}

// resolve asks one place.
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
		return Resolved{}, fmt.Errorf("finding %s: %w", r, err)
	}
	return resolved, nil
}

// known is the answer that needs no request.
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

// usable says that an answer may stand for want of a newer one.
func (s *Store) usable(a answer) bool {
	return s.options.Clock.Since(a.at) < staleFor*s.options.ResolveEvery
}

func (s *Store) renew(ctx context.Context, r *reference) (Resolved, error) {
	if known, ok := s.known(r); ok { // Somebody else was faster.
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

// isAnswer tells a repository's refusal from one that can't be reached.
func isAnswer(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) || errors.Is(err, ErrInvalid)
}

// digestByDownload is for indexes that don't have it. What a version's archive is, is asked once.
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

// forget makes the next Resolve ask again, because the repository no longer has what it said.
func (s *Store) forget(r *reference, resolved Resolved) {
	s.answers.Remove(r.key)
	s.answers.Remove(digestOf(r.place, r.Name, "exactly", resolved.Version))
}
