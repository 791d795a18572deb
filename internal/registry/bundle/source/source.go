// Package source downloads bundles from registries and their mirrors. Callers that need the same
// tag share one HEAD request, and content is downloaded once per digest.
//
// It never selects a bundle or verifies signatures; both are up to the caller. Start with
// Bundles.Get.
package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/artifact"
)

const (
	// keepAnswers is the number of cached tags. A bundle may be a few hundred kilobytes.
	keepAnswers = 64
	// failFor is how long a failure is cached.
	failFor = 10 * time.Second
)

// Options configure Bundles.
type Options struct {
	// Default is the registry for requests that name none, as host[:port][/path].
	Default string
	// Mirrors are tried before the registry. A key is host[:port], or * for all other registries; a
	// value is host[:port][/path].
	Mirrors map[string]string
	// Trust is the access to registries for requests that don't specify it, by host and port.
	Trust map[string]artifact.Access
	// PlainHTTP allows registries without TLS.
	PlainHTTP bool
	// Timeout limits the requests to one registry. The default is 30 seconds.
	Timeout time.Duration
	Clock   clock.PassiveClock
	// Metrics receives the counters, if it is set.
	Metrics prometheus.Registerer
}

// Wanted identifies a bundle.
type Wanted struct {
	// Registry is host[:port][/path], or empty for the default.
	Registry        string
	Repository, Tag string
	// Access is the access to registries, by host and port.
	Access map[string]artifact.Access
	// MaxAge is the maximum age of a cached result. Zero always makes a request.
	MaxAge time.Duration
}

// Found is a bundle in a registry.
type Found struct {
	// Bundle is the published bundle. It is shared and must not be changed.
	Bundle *packagesv1.PackageBundle
	// Digest is the digest of the manifest.
	Digest string
	// From is the location, such as registry.example/bundles:v1-36-latest.
	From string
	// At is the time of the request.
	At time.Time
}

// Bundles downloads and caches bundles. It is safe for concurrent use.
type Bundles struct {
	options   Options
	documents *artifact.Documents
	counts    *counts
	flights   singleflight.Group

	contents *lru.Cache // door and digest → *packagesv1.PackageBundle

	mu      sync.Mutex
	answers *lru.Cache // key of a Wanted → answer

	ctx  context.Context // callers share requests, so these end with Bundles and not with a caller
	stop context.CancelFunc
}

// answer is the cached result for a tag.
type answer struct {
	found  *Found
	failed time.Time
	err    error
}

// New returns Bundles. It makes no request.
func New(o Options) (*Bundles, error) {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	b := &Bundles{
		options: o, counts: &counts{}, answers: lru.New(keepAnswers), contents: lru.New(keepAnswers),
		documents: artifact.NewDocuments(artifact.Options{PlainHTTP: o.PlainHTTP, Trust: o.Trust}),
	}
	if err := b.counts.register(o.Metrics); err != nil {
		return nil, fmt.Errorf("registering the metrics of the bundle source: %w", err)
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b, nil
}

// Close cancels running requests.
func (b *Bundles) Close() {
	b.stop()
	b.documents.Close()
}

// Get returns a bundle. Concurrent callers, and callers within MaxAge, share one request.
func (b *Bundles) Get(ctx context.Context, w Wanted) (*Found, error) {
	places, err := b.places(w)
	if err != nil {
		return nil, err
	}
	key := w.key(places)
	if known, err := b.known(key, w.MaxAge); known != nil || err != nil {
		return known, err
	}
	results := b.flights.DoChan(key, func() (any, error) {
		if known, err := b.known(key, w.MaxAge); known != nil || err != nil { // another caller was faster
			return known, err
		}
		return b.refresh(key, places)
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-results:
		found, _ := result.Val.(*Found)
		return found, result.Err
	}
}

// known returns the cached result, or nil if a request is required.
func (b *Bundles) known(key string, maxAge time.Duration) (*Found, error) {
	a := b.remembered(key)
	now := b.options.Clock.Now()
	switch {
	case a.err != nil && now.Sub(a.failed) < failFor:
		return nil, a.err
	case a.err == nil && a.found != nil && now.Sub(a.found.At) < maxAge:
		return a.found, nil
	default:
		return nil, nil
	}
}

func (b *Bundles) remembered(key string) answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, _ := b.answers.Get(key)
	a, _ := found.(answer)
	return a
}

func (b *Bundles) remember(key string, a answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers.Add(key, a)
}

// refresh tries the places in order. If all fail, it keeps the previous result, so that its content
// need not be downloaded again.
func (b *Bundles) refresh(key string, places []place) (*Found, error) {
	last := b.remembered(key)
	found, err := b.firstOf(places, last.found)
	if err != nil {
		b.counts.failures.Add(1)
		b.remember(key, answer{found: last.found, failed: b.options.Clock.Now(), err: err})
		return nil, err
	}
	b.remember(key, answer{found: found})
	return found, nil
}

func (b *Bundles) firstOf(places []place, last *Found) (*Found, error) {
	var failed error
	for _, p := range places {
		found, err := b.request(p, last)
		if err == nil {
			return found, nil
		}
		if failed == nil {
			failed = err
		} else {
			failed = fmt.Errorf("%w; mirror: %w", err, failed)
		}
	}
	return nil, fmt.Errorf("pulling package bundle: %w", failed)
}

func (b *Bundles) request(p place, last *Found) (*Found, error) {
	ctx, cancel := context.WithTimeout(b.ctx, b.options.Timeout)
	defer cancel()
	now := b.options.Clock.Now()
	b.counts.looks.Add(1)
	digest, err := b.documents.Digest(ctx, p.ref)
	if err != nil {
		return nil, fmt.Errorf("fetch manifest: %q: %w", p, err)
	}
	if last != nil && last.Digest == digest && last.From == p.String() {
		return &Found{Bundle: last.Bundle, Digest: digest, From: last.From, At: now}, nil
	}
	bundle, err := b.content(ctx, p, digest)
	if err != nil {
		return nil, err
	}
	return &Found{Bundle: bundle, Digest: digest, From: p.String(), At: now}, nil
}

// content returns the bundle with a digest. It is downloaded once, regardless of the number of
// tags.
func (b *Bundles) content(ctx context.Context, p place, digest string) (*packagesv1.PackageBundle, error) {
	key := "content " + p.accessKey() + digest
	got, err, _ := b.flights.Do(key, func() (any, error) {
		if known, ok := b.contents.Get(key); ok {
			return known, nil
		}
		b.counts.downloads.Add(1)
		bundle, err := b.download(ctx, p, digest)
		if err == nil {
			b.contents.Add(key, bundle)
		}
		return bundle, err
	})
	if err != nil {
		return nil, err
	}
	bundle, _ := got.(*packagesv1.PackageBundle)
	return bundle, nil
}
