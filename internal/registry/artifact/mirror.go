package artifact

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// mirrored returns the reference to the package in the mirror of its registry. Mirrors are used
// only for digests, because their tags may be outdated.
func (s *Store) mirrored(ref Ref) (Ref, bool) {
	base, err := url.Parse(ref.URL)
	if err != nil || !strings.EqualFold(base.Scheme, "oci") || !isDigest(ref.Version) {
		return ref, false
	}
	to, ok := s.options.Mirrors[base.Host]
	if !ok {
		to = s.options.Mirrors["*"]
	}
	host, _, _ := strings.Cut(to, "/")
	if host == "" || host == base.Host {
		return ref, false
	}
	trusted, ok := s.options.Trust[host]
	if !ok { // the credentials of the registry are not for the mirror, except for its own entry in a Docker config
		trusted = Access{DockerConfig: ref.Access.DockerConfig, CA: ref.Access.CA}
	}
	ref.Access = trusted
	ref.URL = "oci://" + path.Join(to, base.Path)
	return ref, true
}

// Resolve returns the version and the digest that a Ref refers to. Exact versions and digests are
// resolved once, others again every ResolveEvery, without requests in between. If the repository is
// unreachable, the last result is used for six times that long. Mirrors are tried before their
// registry.
func (s *Store) Resolve(ctx context.Context, ref Ref) (Resolved, error) {
	if r, err := parse(trusting(s.options.Trust, ref)); err == nil {
		if known, ok := s.known(r); ok { // the mirror didn't have it
			return known, nil
		}
	}
	return firstOf(ctx, s, ref, s.resolve)
}

// Fetch returns the archive of a resolved Ref, from the cache if possible, and verifies it if the
// Ref requires it. Callers share the bytes and must not change them. Mirrors are tried before their
// registry.
func (s *Store) Fetch(ctx context.Context, ref Ref, resolved Resolved) ([]byte, error) {
	return firstOf(ctx, s, ref, func(ctx context.Context, ref Ref) ([]byte, error) { return s.fetch(ctx, ref, resolved) })
}

func firstOf[T any](ctx context.Context, s *Store, ref Ref, get func(context.Context, Ref) (T, error)) (T, error) {
	mirror, ok := s.mirrored(ref)
	if !ok {
		return get(ctx, ref)
	}
	found, failed := get(ctx, mirror)
	if failed == nil || ctx.Err() != nil {
		return found, failed
	}
	found, err := get(ctx, ref)
	if err != nil {
		return found, fmt.Errorf("%w; mirror: %v", err, failed) //nolint:errorlint // callers decide by the error of the registry
	}
	return found, nil
}
