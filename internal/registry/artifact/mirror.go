package artifact

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// mirrored is the same package in the mirror of its registry. Only what is named by its digest is looked for there: whoever has it, it is the
// same, while a mirror may be behind with versions.
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
	if !ok { // What opens the registry is none of the mirror's business, but for what a docker config has for the mirror itself.
		trusted = Access{DockerConfig: ref.Access.DockerConfig, CA: ref.Access.CA}
	}
	ref.Access = trusted
	ref.URL = "oci://" + path.Join(to, base.Path)
	return ref, true
}

// Resolve says which version and which content a Ref stands for. The answer to an exact version or a digest is final, others are looked
// for again every ResolveEvery; in between no request is made. If the repository can't be reached, the last answer stands for six times
// that long. A mirror is asked before the registry that it stands for.
func (s *Store) Resolve(ctx context.Context, ref Ref) (Resolved, error) {
	if r, err := parse(trusting(s.options.Trust, ref)); err == nil {
		if known, ok := s.known(r); ok { // The mirror did not have it.
			return known, nil
		}
	}
	return firstOf(ctx, s, ref, s.resolve)
}

// Fetch returns the archive that Resolve named, from disk if it is there. It is verified if the Ref asks for that. Callers may share the
// bytes and must not change them. A mirror is asked before the registry that it stands for.
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
		return found, fmt.Errorf("%w; mirror: %v", err, failed) //nolint:errorlint // what is wrong with a mirror does not decide
	}
	return found, nil
}
