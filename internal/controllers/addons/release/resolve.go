package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/artifact"
)

// Resolver resolves and fetches packages. Both may take long.
type Resolver interface {
	Resolve(ctx context.Context, ref artifact.Ref) (artifact.Resolved, error)
	Fetch(ctx context.Context, ref artifact.Ref, resolved artifact.Resolved) ([]byte, error)
}

// resolveTimeout limits a request to a repository.
const resolveTimeout = 30 * time.Second

// resolutions caches what references resolve to, and resolves outside the workers: an unreachable
// repository delays only releases that need it, and is asked once for all of them.
type resolutions struct {
	resolver Resolver
	clock    clock.PassiveClock
	// every is how long the resolution of a floating version is valid.
	every time.Duration
	// enqueue reconciles a release that waited.
	enqueue func(client.ObjectKey)
	// stop ends current requests.
	stop context.Context

	mu    sync.Mutex
	known map[string]*resolution
}

type resolution struct {
	resolved artifact.Resolved
	err      error
	at       time.Time
	failures int
	asking   bool
	// since is when the request started, and used when the resolution was last needed.
	since, used time.Time
	waiting     map[client.ObjectKey]bool
}

// question is a request to a repository.
type question struct {
	key string
	// floats reports that the answer may change.
	floats bool
	ask    func(context.Context) (artifact.Resolved, error)
}

// resolve returns what a reference resolves to.
func (r *resolutions) resolve(ref artifact.Ref, who client.ObjectKey) (artifact.Resolved, *problem) {
	return r.lookup(question{key: identity(ref), floats: floating(ref.Version), ask: func(ctx context.Context) (artifact.Resolved, error) {
		return r.resolver.Resolve(ctx, ref)
	}}, who)
}

// fetch fetches a package before an operation needs it, because an operation that waits for a
// repository would block a slot of its cluster. Final errors are left to the operation.
func (r *resolutions) fetch(ref artifact.Ref, resolved artifact.Resolved, who client.ObjectKey) *problem {
	_, p := r.lookup(question{key: resolved.Digest + " " + identity(ref), ask: func(ctx context.Context) (artifact.Resolved, error) {
		_, err := r.resolver.Fetch(ctx, ref, resolved)
		if final(err) {
			return resolved, nil
		}
		return resolved, err
	}}, who)
	return p
}

// lookup returns what is known. If that is nothing or too old, it asks in the background and
// enqueues the release when there is an answer. An old answer is valid until then.
func (r *resolutions) lookup(q question, who client.ObjectKey) (artifact.Resolved, *problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.known[q.key]
	if n == nil {
		r.prune()
		n = &resolution{waiting: map[client.ObjectKey]bool{}}
		r.known[q.key] = n
	}
	n.used = r.clock.Now()
	if !n.asking && r.due(n, q) {
		n.asking, n.since = true, r.clock.Now()
		go r.ask(q)
	}
	switch {
	case n.resolved != artifact.Resolved{}:
		return n.resolved, nil
	case n.asking && n.err == nil:
		n.waiting[who] = true
		return artifact.Resolved{}, &problem{reason: preparing, message: "Resolving the chart", after: patience, transient: r.clock.Now().Sub(n.since) < patience}
	case n.asking:
		n.waiting[who] = true
		return artifact.Resolved{}, &problem{reason: n.reason(), message: message(n.err)} // the last failure stands until then
	default:
		return artifact.Resolved{}, &problem{reason: n.reason(), message: message(n.err), after: n.at.Add(n.backoff()).Sub(r.clock.Now())}
	}
}

// keepResolutions is how many resolutions are kept before unused ones are dropped after an hour.
const keepResolutions = 1000

func (r *resolutions) prune() {
	if len(r.known) < keepResolutions {
		return
	}
	old := r.clock.Now().Add(-time.Hour)
	maps.DeleteFunc(r.known, func(_ string, n *resolution) bool { return !n.asking && n.used.Before(old) })
}

func (r *resolutions) due(n *resolution, q question) bool {
	age := r.clock.Now().Sub(n.at)
	switch {
	case n.at.IsZero():
		return true
	case n.err != nil:
		return age >= n.backoff()
	default:
		return q.floats && age >= r.every
	}
}

// reason is the reason for a chart that can't be downloaded. It is no waiting reason, although the
// download is retried, because a user may have to act; only a first failure that may pass by itself
// is one, so that it doesn't stop a rollout.
func (n *resolution) reason() string {
	if n.failures < 2 && !final(n.err) {
		return preparing
	}
	return addonsv1.InstallOrUpgradeFailedReason
}

// final reports whether a repository responded that it doesn't have a package or doesn't deliver
// it.
func final(err error) bool {
	return slices.ContainsFunc([]error{artifact.ErrNotFound, artifact.ErrForbidden, artifact.ErrUnverified, artifact.ErrInvalid}, func(one error) bool {
		return errors.Is(err, one)
	})
}

func (n *resolution) backoff() time.Duration {
	if errors.Is(n.err, artifact.ErrInvalid) {
		return terminalRetry
	}
	return min(firstRetry<<min(n.failures-1, 10), maxRetry)
}

func (r *resolutions) ask(q question) {
	ctx, cancel := context.WithTimeout(r.stop, resolveTimeout)
	defer cancel()
	resolved, err := q.ask(ctx)
	for who := range r.record(q.key, resolved, err) {
		r.enqueue(who)
	}
}

func (r *resolutions) record(key string, resolved artifact.Resolved, err error) map[client.ObjectKey]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.known[key]
	n.asking, n.at, n.err = false, r.clock.Now(), err
	if err != nil {
		n.failures++
	} else {
		n.resolved, n.failures = resolved, 0
	}
	waiting := n.waiting
	n.waiting = map[client.ObjectKey]bool{}
	return waiting
}

// floating reports whether a version may resolve to another one later.
func floating(version string) bool {
	if _, err := semver.NewVersion(version); err == nil {
		_, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
		return err != nil
	}
	_, isDigest := digestOf(version)
	return !isDigest
}

func digestOf(version string) (string, bool) {
	const prefix = "sha256:"
	if len(version) == len(prefix)+hex.EncodedLen(sha256.Size) && version[:len(prefix)] == prefix {
		return version[len(prefix):], true
	}
	return "", false
}

// identity identifies a reference with its credentials.
func identity(ref artifact.Ref) string {
	text, _ := json.Marshal(ref) // of strings and bytes only
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
