package artifact

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/utils/lru"
)

// Maximum sizes.
const (
	maxArchive    = 64 << 20
	maxProvenance = 1 << 20
	// maxWork is the maximum for all responses that one call needs, such as pages of tags.
	maxWork = 256 << 20
)

// repositories are HTTP servers with an index.yaml.
type repositories struct {
	store   *Store
	clients *clients
	indexes *lru.Cache // place → *known
}

// known is a cached index.
type known struct {
	index index
	at    time.Time
	// etag and modified are headers of the response, and text is the digest of its body, for
	// servers without these headers.
	etag, modified string
	text           [sha256.Size]byte
}

func (r *repositories) resolve(ctx context.Context, ref *reference) (Resolved, time.Time, error) {
	if isDigest(ref.Version) {
		return Resolved{}, time.Time{}, fmt.Errorf("%w: digests require a registry", ErrInvalid)
	}
	e, at, err := r.find(ctx, ref, func(i index) (entry, error) { return i.choose(ref.Name, ref.Version) })
	return Resolved{Version: e.version, Digest: e.digest}, at, err
}

// find finds an entry in the cached index, or else in the current one.
func (r *repositories) find(ctx context.Context, ref *reference, pick func(index) (entry, error)) (entry, time.Time, error) {
	before := r.have(ref)
	if r.fresh(before) {
		if e, err := pick(before.index); !errors.Is(err, ErrNotFound) {
			return e, before.at, err
		}
	}
	k, err := share(ctx, r.store, "index "+ref.place, func(ctx context.Context) (*known, error) { return r.renew(ctx, ref, before) })
	if err != nil {
		return entry{}, time.Time{}, err
	}
	e, err := pick(k.index)
	return e, k.at, err
}

func (r *repositories) fresh(k *known) bool {
	return k != nil && r.store.options.Clock.Since(k.at) < r.store.options.ResolveEvery
}

// renew requests the index unless another caller has renewed it.
func (r *repositories) renew(ctx context.Context, ref *reference, before *known) (*known, error) {
	if k := r.have(ref); k != before && r.fresh(k) { // another caller was faster
		return k, nil
	}
	now := r.store.options.Clock.Now()
	k, err := r.request(ctx, ref, r.have(ref))
	if err != nil {
		return nil, err
	}
	k.at = now
	r.indexes.Add(ref.place, k)
	return k, nil
}

func (r *repositories) have(ref *reference) *known {
	if found, ok := r.indexes.Get(ref.place); ok {
		return found.(*known)
	}
	return nil
}

// request requests the index if it has changed.
func (r *repositories) request(ctx context.Context, ref *reference, before *known) (*known, error) {
	client, err := r.client(ref)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	if before != nil && before.etag != "" {
		header.Set("If-None-Match", before.etag)
	}
	if before != nil && before.modified != "" {
		header.Set("If-Modified-Since", before.modified)
	}
	r.store.counts.indexRequests.Add(1)
	k, sum := &known{}, sha256.New()
	got, err := get(ctx, client, request{address(ref, "index.yaml"), header}, func(body io.Reader) (err error) {
		k.index, err = readIndex(io.TeeReader(body, sum))
		return err
	})
	if err != nil {
		return nil, err
	}
	if got.unchanged {
		if before == nil {
			return nil, fmt.Errorf("%w: the server reports an unchanged index without a conditional request", ErrInvalid)
		}
		return &known{index: before.index, etag: before.etag, modified: before.modified, text: before.text}, nil
	}
	k.etag, k.modified = got.header.Get("ETag"), got.header.Get("Last-Modified")
	sum.Sum(k.text[:0])
	if before != nil && before.text == k.text {
		k.index = before.index // The same strings, so that those of the new one can be freed.
	}
	return k, nil
}
