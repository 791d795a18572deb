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
)

// How much is kept in memory. An entry of any of them is small but for an index, which has a line for each version in a repository.
const (
	keepAnswers  = 8192
	keepVerified = 4096
	keepIndexes  = 64
	keepClients  = 256
)

// Options of a Store. Dir is the only one without a default.
type Options struct {
	// Dir is for the cache. Several stores, also of several processes, may share it.
	Dir string
	// MaxBytes bounds the cache, 1 GiB if it is 0.
	MaxBytes int64
	// PlainHTTP allows http:// repositories, and registries without TLS.
	PlainHTTP bool
	// ResolveEvery is how long the answer for a range, or for the newest version, stands. 10 minutes if it is 0.
	ResolveEvery time.Duration
	// Timeout bounds what is done for one call, 2 minutes if it is 0. Whoever calls may give up sooner.
	Timeout time.Duration
	// Trust is how to get into places that need no settings by those who name them, by host and port.
	Trust map[string]Access
	// Mirrors are asked for what is named by its digest before the registry that they stand for. A key is host and port, or * for all others; a
	// value is host[:port][/path].
	Mirrors map[string]string
	Clock   clock.PassiveClock
	// Metrics, if set, gets the counters. A registry takes those of one store.
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

// Store finds and gets packages, and keeps them. Its methods are safe for concurrent use, and callers that want the same share the work.
type Store struct {
	options Options
	cache   *cache
	counts  *counts
	clients *clients

	repositories, registries source

	answers  *lru.Cache // key of a Ref → answer
	verified *lru.Cache // key of a verification → struct{}
	flights  singleflight.Group

	ctx     context.Context // Work that callers share is bound to the store, not to the one who came first.
	stop    context.CancelFunc
	mu      sync.Mutex
	running sync.WaitGroup
}

// source is a way to publish packages. Versions are as the source writes them.
type source interface {
	// resolve finds the version that is wanted, as known at a time. The digest is empty if only a download can tell.
	resolve(ctx context.Context, ref *reference) (Resolved, time.Time, error)
	// download gets the archive. Whether it is the right one is for the caller to check.
	download(ctx context.Context, ref *reference, resolved Resolved) ([]byte, error)
	// provenance gets the provenance file.
	provenance(ctx context.Context, ref *reference, resolved Resolved) ([]byte, error)
	// signatures gets what cosign put beside the package, and the digest of what it signed.
	signatures(ctx context.Context, ref *reference, resolved Resolved) (string, []signature, error)
}

// Open makes a store over a directory, which is made if it is not there.
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

// Close ends what is under way and waits for it. The store can't be used afterwards, what it keeps on disk can.
func (s *Store) Close() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.running.Wait()
	s.clients.close()
}

// Stats says what the store did so far.
func (s *Store) Stats() Stats { return s.counts.stats() }

// share does the work of a key once for all who ask for it at the same time. It goes on when one of them gives up.
func share[T any](ctx context.Context, s *Store, key string, work func(context.Context) (T, error)) (T, error) {
	results := s.flights.DoChan(key, func() (any, error) {
		if !s.enter() {
			return nil, fmt.Errorf("the package cache is closed: %w", context.Canceled)
		}
		defer s.running.Done()
		ctx, cancel := context.WithTimeout(s.ctx, s.options.Timeout)
		defer cancel()
		return work(ctx)
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
