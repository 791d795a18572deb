package artifact

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/utils/lru"
)

// registries is the source for packages that are OCI artifacts.
type registries struct {
	store     *Store
	clients   *clients
	pullers   *lru.Cache // place and name → *puller
	manifests *lru.Cache // place, name and digest of the archive → *manifest
}

func (r *registries) resolve(ctx context.Context, ref *reference) (Resolved, time.Time, error) {
	now := r.store.options.Clock.Now()
	p, err := r.puller(ref)
	if err != nil {
		return Resolved{}, now, err
	}
	version, err := r.version(ctx, p, ref.Version)
	if err != nil {
		return Resolved{}, now, err
	}
	m, version, err := r.spelled(ctx, p, version)
	if err != nil {
		return Resolved{}, now, err
	}
	r.manifests.Add(manifestKey(ref, m.archive.Digest.String()), m)
	return Resolved{Version: version, Digest: m.archive.Digest.String()}, now, nil
}

func manifestKey(ref *reference, digest string) string { return digestOf(ref.place, ref.Name, digest) }

// version chooses a tag, unless the version is exact.
func (r *registries) version(ctx context.Context, p *puller, wanted string) (string, error) {
	if isFinal(wanted) {
		return wanted, nil
	}
	r.store.counts.indexRequests.Add(1)
	tags, err := p.List(ctx, p.repository)
	if err != nil {
		return "", fmt.Errorf("listing the tags of %q: %w", p.repository, registryError(err))
	}
	var versions []string
	for _, tag := range tags {
		if tag == wanted { // any tag can be requested by name
			return wanted, nil
		}
		// A tag may be the short name of a commit that looks like a number.
		if version := strings.ReplaceAll(tag, "_", "+"); isExact(version) {
			versions = append(versions, version)
		}
	}
	return choose(wanted, versions)
}

// spelled downloads the manifest of a version, with or without the prefix v.
func (r *registries) spelled(ctx context.Context, p *puller, version string) (*manifest, string, error) {
	var missing error
	for _, spelled := range spellings(version) {
		m, err := r.manifest(ctx, p, spelled)
		if !errors.Is(err, ErrNotFound) {
			return m, spelled, err
		}
		if missing == nil {
			missing = err
		}
	}
	return nil, "", missing
}

// manifest downloads the manifest of a version or a digest.
func (r *registries) manifest(ctx context.Context, p *puller, version string) (*manifest, error) {
	var ref name.Reference = p.repository.Tag(strings.ReplaceAll(version, "+", "_"))
	if isDigest(version) {
		if _, ok := parseDigest(version); !ok {
			return nil, fmt.Errorf("%w: %q is not a digest", ErrInvalid, version)
		}
		ref = p.repository.Digest(version)
	}
	r.store.counts.indexRequests.Add(1)
	got, err := p.Get(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("requesting the manifest of %q: %w", ref, registryError(err))
	}
	return parseManifest(got.Digest.String(), got.Manifest)
}

// described returns the manifest that an archive was resolved from. It fails if the manifest
// changed.
func (r *registries) described(ctx context.Context, p *puller, ref *reference, resolved Resolved) (*manifest, error) {
	key := manifestKey(ref, resolved.Digest)
	if found, ok := r.manifests.Get(key); ok {
		return found.(*manifest), nil
	}
	version := resolved.Version
	if isDigest(ref.Version) {
		version = ref.Version
	}
	m, err := r.manifest(ctx, p, version)
	if err != nil {
		return nil, err
	}
	if m.archive.Digest.String() != resolved.Digest {
		return nil, fmt.Errorf("%w: version %q is now %s, not %s", ErrInvalid, version, m.archive.Digest, resolved.Digest)
	}
	r.manifests.Add(key, m)
	return m, nil
}

func (r *registries) download(ctx context.Context, ref *reference, resolved Resolved) ([]byte, error) {
	p, err := r.puller(ref)
	if err != nil {
		return nil, err
	}
	return p.blob(ctx, resolved.Digest, maxArchive)
}

func (r *registries) provenance(ctx context.Context, ref *reference, resolved Resolved) ([]byte, error) {
	p, err := r.puller(ref)
	if err != nil {
		return nil, err
	}
	m, err := r.described(ctx, p, ref, resolved)
	if err != nil {
		return nil, err
	}
	if m.provenance == "" {
		return nil, fmt.Errorf("%w: the chart has no provenance file", ErrNotFound)
	}
	return p.blob(ctx, m.provenance, maxProvenance)
}
