package artifact

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/drover-dev/drover/internal/base/bounded"
)

// Sizes of the caches in memory. Entries are small, except for indexes.
const (
	keepAnswers  = 8192
	keepVerified = 4096
	keepIndexes  = 64
	keepClients  = 256
)

// Options configure a Store. Only Dir is required.
type Options struct {
	// Dir is the directory of the cache. Several stores and processes may share it.
	Dir string
	// MaxBytes is the maximum size of the cache. The default is 1 GiB.
	MaxBytes int64
	// PlainHTTP allows http:// repositories, and registries without TLS.
	PlainHTTP bool
	// ResolveEvery is how long ranges and newest versions are cached. The default is 10 minutes.
	ResolveEvery time.Duration
	// Timeout limits the work for one call. The default is 2 minutes.
	Timeout time.Duration
	// Trust is the default access by host and port.
	Trust map[string]Access
	// Mirrors are tried before their registry for references by digest. A key is host[:port], or *
	// for all other registries; a value is host[:port][/path].
	Mirrors map[string]string
	Clock   clock.PassiveClock
	// Metrics receives the counters if it is set. A registry accepts those of one store.
	Metrics prometheus.Registerer
}

func (o Options) withDefaults() Options {
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 30
	}
	if o.ResolveEvery == 0 {
		o.ResolveEvery = 10 * time.Minute
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// Store resolves, downloads and caches packages. Its methods are safe for concurrent use, and
// concurrent callers with the same request share the work.
type Store struct {
	options Options
	cache   *cache
	counts  *counts
	clients *clients

	repositories, registries source

	answers  *lru.Cache // key of a Ref → answer
	verified *lru.Cache // key of a verification → struct{}
	flights  singleflight.Group

	ctx     context.Context // shared work ends with the store, not with its first caller
	stop    context.CancelFunc
	mu      sync.Mutex
	running sync.WaitGroup
}

// source is a kind of repository. Versions are as the source spells them.
type source interface {
	// resolve returns the wanted version and the time of this information. The digest is empty if
	// it requires a download.
	resolve(ctx context.Context, ref *reference) (Resolved, time.Time, error)
	// download downloads the archive. The caller verifies it.
	download(ctx context.Context, ref *reference, resolved Resolved) ([]byte, error)
	// provenance downloads the provenance file.
	provenance(ctx context.Context, ref *reference, resolved Resolved) ([]byte, error)
	// signatures downloads the signatures of cosign, and returns the signed digest.
	signatures(ctx context.Context, ref *reference, resolved Resolved) (string, []signature, error)
}

// Open opens a store and creates its directory if necessary.
func Open(options Options) (*Store, error) {
	options = options.withDefaults()
	dir, err := filepath.Abs(options.Dir)
	if err != nil || options.Dir == "" {
		return nil, fmt.Errorf("opening the package cache %q: %w", options.Dir, errors.Join(ErrInvalid, err))
	}
	s := &Store{
		options: options, cache: &cache{dir: dir, max: options.MaxBytes, clock: options.Clock}, counts: &counts{},
		clients: newClients(options.PlainHTTP),
		answers: lru.New(keepAnswers), verified: lru.New(keepVerified),
	}
	if err := s.cache.open(); err != nil {
		return nil, fmt.Errorf("opening the package cache %q: %w", dir, err)
	}
	if err := s.counts.register(options.Metrics); err != nil {
		return nil, fmt.Errorf("registering the metrics of the package cache: %w", err)
	}
	s.repositories = &repositories{store: s, clients: s.clients, indexes: lru.New(keepIndexes)}
	s.registries = &registries{store: s, clients: s.clients, pullers: lru.New(keepClients), manifests: lru.New(keepAnswers)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Close cancels all work and waits for its end. The store can't be used afterwards; its files can.
func (s *Store) Close() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.running.Wait()
	s.clients.close()
}

// Stats returns the counters since the store was opened.
func (s *Store) Stats() Stats { return s.counts.stats() }

// share does the work of a key once for all concurrent callers. It continues if one of them gives
// up.
func share[T any](ctx context.Context, s *Store, key string, work func(context.Context) (T, error)) (T, error) {
	results := s.flights.DoChan(key, func() (any, error) {
		if !s.enter() {
			return nil, fmt.Errorf("the package cache is closed: %w", context.Canceled)
		}
		defer s.running.Done()
		ctx, cancel := context.WithTimeout(s.ctx, s.options.Timeout)
		defer cancel()
		return work(bounded.WithBudget(ctx, maxWork))
	})
	var none T
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case result := <-results:
		if result.Err != nil {
			return none, result.Err
		}
		return result.Val.(T), nil
	}
}

func (s *Store) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.running.Add(1)
	return true
}
