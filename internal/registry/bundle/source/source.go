// Package source gets bundles from registries. However many clusters ask for the same tag, it is looked at once, with a request that has no
// body in its answer, and its content comes once for each digest.
//
// It knows mirrors, credentials and how bundles are laid out as artefacts. It never decides which bundle is wanted, and does not check
// signatures: both are up to the caller. Start with Bundles.Get.
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
	// keepAnswers is how many tags are remembered with their bundles, which may have a few hundred kilobytes each.
	keepAnswers = 64
	// failFor is how long all who ask are told of a failure without a request of their own.
	failFor = 10 * time.Second
)

// Options are the same for all bundles.
type Options struct {
	// Default is the registry of those who name none, host[:port][/path].
	Default string
	// Mirrors are asked first, and then the registry that they stand for. A key is a host with its port if it has one, or * for all others;
	// a value is host[:port][/path].
	Mirrors map[string]string
	// Trust is how to get into registries whose access is not told by those who ask, by host and port.
	Trust map[string]artifact.Access
	// PlainHTTP allows registries without TLS.
	PlainHTTP bool
	// Timeout bounds what is done in one registry for one question, 30 seconds if it is 0.
	Timeout time.Duration
	Clock   clock.PassiveClock
	// Metrics, if set, gets the counters.
	Metrics prometheus.Registerer
}

// Wanted is a question.
type Wanted struct {
	// Registry is host[:port][/path], the default if it is empty.
	Registry        string
	Repository, Tag string
	// Access opens registries, by host and port.
	Access map[string]artifact.Access
	// MaxAge is how old an answer may be. Without it the registry is asked.
	MaxAge time.Duration
}

// Found is an answer.
type Found struct {
	// Bundle is as it was published, and shared: it must not be changed.
	Bundle *packagesv1.PackageBundle
	// Digest is that of the manifest.
	Digest string
	// From is where it was found, such as registry.example/bundles:v1-36-latest.
	From string
	// At is when the registry said so.
	At time.Time
}

// Bundles gets bundles. It is safe for concurrent use.
type Bundles struct {
	options   Options
	documents *artifact.Documents
	counts    *counts
	flights   singleflight.Group

	contents *lru.Cache // door and digest → *packagesv1.PackageBundle

	mu      sync.Mutex
	answers *lru.Cache // key of a Wanted → answer

	ctx  context.Context // Work that callers share is bound to Bundles, not to the one who came first.
	stop context.CancelFunc
}

// answer is what is known of a tag.
type answer struct {
	found  *Found
	failed time.Time
	err    error
}

// New asks nobody yet.
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
		return nil, fmt.Errorf("registering the metrics of bundles: %w", err)
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b, nil
}

// Close ends what is under way.
func (b *Bundles) Close() {
	b.stop()
	b.documents.Close()
}

// Get returns a bundle. All who ask for the same at the same time, or while an answer is not too old, share one look at the registry.
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
		if known, err := b.known(key, w.MaxAge); known != nil || err != nil { // Somebody else was faster.
			return known, err
		}
		return b.look(key, places)
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-results:
		found, _ := result.Val.(*Found)
		return found, result.Err
	}
}

// known is the answer that needs no request.
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

// look asks the places one after the other. What was known is kept when none of them answers, so that its content need not come again.
func (b *Bundles) look(key string, places []place) (*Found, error) {
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
		found, err := b.ask(p, last)
		if err == nil {
			return found, nil
		}
		if failed == nil {
			failed = err
		} else {
			failed = fmt.Errorf("%w; its mirror before that: %w", err, failed)
		}
	}
	return nil, fmt.Errorf("pulling package bundle: %w", failed)
}

func (b *Bundles) ask(p place, last *Found) (*Found, error) {
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

// content is what a digest stands for. It comes once, under however many tags: the newest bundle is also there by its own name.
func (b *Bundles) content(ctx context.Context, p place, digest string) (*packagesv1.PackageBundle, error) {
	key := "content " + p.door() + digest
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
