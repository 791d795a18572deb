package artifact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Providers of signatures.
const (
	ProviderHelm   = "helm"
	ProviderCosign = "cosign"
)

// verify checks that a signature covers the archive. Successful checks are cached by keys.
func (s *Store) verify(ctx context.Context, r *reference, resolved Resolved, archive []byte) error {
	if len(r.Verify.Keys) == 0 {
		return fmt.Errorf("%w: verification requires public keys; keyless signatures are not supported", ErrInvalid)
	}
	key := verificationKey(r, resolved)
	if _, ok := s.verified.Get(key); ok {
		return nil
	}
	_, err := share(ctx, s, "verify "+r.place+key, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.check(ctx, r, resolved, archive)
	})
	if err != nil {
		return err
	}
	s.verified.Add(key, struct{}{})
	return nil
}

// verificationKey identifies everything that a verification depends on.
func verificationKey(r *reference, resolved Resolved) string {
	parts := []string{r.Verify.Provider, r.Name, resolved.Version, resolved.Digest}
	for _, name := range slices.Sorted(maps.Keys(r.Verify.Keys)) {
		parts = append(parts, name, string(r.Verify.Keys[name]))
	}
	return digestOf(parts...)
}

func (s *Store) check(ctx context.Context, r *reference, resolved Resolved, archive []byte) error {
	switch r.Verify.Provider {
	case ProviderHelm:
		file, err := s.source(r).provenance(ctx, r, resolved)
		if err != nil {
			return unsigned(err, "no provenance file found")
		}
		return checkProvenance(file, r, resolved)
	case ProviderCosign:
		digest, signatures, err := s.source(r).signatures(ctx, r, resolved)
		if err != nil {
			return unsigned(err, "no signature found")
		}
		if err := checkSignatures(digest, signatures, r.Verify.Keys); err != nil {
			return err
		}
		return checkIdentity(archive, r, resolved)
	default:
		return fmt.Errorf("%w: unknown provider %q of signatures, want %s or %s", ErrInvalid, r.Verify.Provider, ProviderCosign, ProviderHelm)
	}
}

// unsigned converts a missing signature to ErrUnverified.
func unsigned(err error, what string) error {
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: %s", ErrUnverified, what)
	}
	return err
}

// names lists keys in errors.
func names(keys map[string][]byte) string { return strings.Join(slices.Sorted(maps.Keys(keys)), ", ") }
