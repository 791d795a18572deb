package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/registry/artifact"
)

// Resolver finds what a reference stands for, and gets it. Both may take long.
type Resolver interface {
	Resolve(ctx context.Context, ref artifact.Ref) (artifact.Resolved, error)
	Fetch(ctx context.Context, ref artifact.Ref, resolved artifact.Resolved) ([]byte, error)
}

// resolveTimeout bounds how long a repository is waited for.
const resolveTimeout = 30 * time.Second

// resolutions remembers what references stand for, and asks beside the controller's workers: a repository that does not answer holds up
// nobody who does not need it, and is asked once, however many releases come from it.
type resolutions struct {
	resolver Resolver
	clock    clock.PassiveClock
	// every is how long an answer for a version that may move is good.
	every time.Duration
	// wake tells those who waited for an answer.
	wake func(client.ObjectKey)
	// stop ends what is under way.
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
	// since is when it began, and used when somebody wanted to know last.
	since, used time.Time
	waiting     map[client.ObjectKey]bool
}

// question is one to a repository.
type question struct {
	key string
	// floats says that there may be another answer tomorrow.
	floats bool
	ask    func(context.Context) (artifact.Resolved, error)
}

// get says what a reference stands for.
func (r *resolutions) get(ref artifact.Ref, who client.ObjectKey) (artifact.Resolved, *problem) {
	return r.answer(question{key: identity(ref), floats: floating(ref.Version), ask: func(ctx context.Context) (artifact.Resolved, error) {
		return r.resolver.Resolve(ctx, ref)
	}}, who)
}

// fetched gets a package before an operation needs it: an operation that waited for a repository would take the place of others on its
// cluster. An answer that is a refusal is for the operation to tell.
func (r *resolutions) fetched(ref artifact.Ref, resolved artifact.Resolved, who client.ObjectKey) *problem {
	_, p := r.answer(question{key: resolved.Digest + " " + identity(ref), ask: func(ctx context.Context) (artifact.Resolved, error) {
		_, err := r.resolver.Fetch(ctx, ref, resolved)
		for _, refusal := range []error{artifact.ErrNotFound, artifact.ErrForbidden, artifact.ErrUnverified, artifact.ErrInvalid} {
			if errors.Is(err, refusal) {
				return resolved, nil
			}
		}
		return resolved, err
	}}, who)
	return p
}

// answer returns what is known. If that is nothing, or too old, it asks, and wakes the one who waits when there is an answer; an old answer
// is good until there is a new one.
func (r *resolutions) answer(q question, who client.ObjectKey) (artifact.Resolved, *problem) {
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
		return artifact.Resolved{}, &problem{reason: preparing, message: "Resolving the chart", after: patience, soon: r.clock.Now().Sub(n.since) < patience}
	case n.asking:
		n.waiting[who] = true
		return artifact.Resolved{}, &problem{reason: preparing, message: bound(n.err.Error())} // what was told stands until then
	default:
		return artifact.Resolved{}, &problem{reason: preparing, message: bound(n.err.Error()), after: n.at.Add(n.pause()).Sub(r.clock.Now())}
	}
}

// keepResolutions is how many are kept before those go that nobody has asked for since an hour: references to versions and with
// credentials of the past.
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
		return age >= n.pause()
	default:
		return q.floats && age >= r.every
	}
}

func (n *resolution) pause() time.Duration {
	if errors.Is(n.err, artifact.ErrInvalid) {
		return terminalRetry
	}
	return min(firstRetry<<min(n.failures-1, 10), maxRetry)
}

func (r *resolutions) ask(q question) {
	ctx, cancel := context.WithTimeout(r.stop, resolveTimeout)
	defer cancel()
	resolved, err := q.ask(ctx)
	for who := range r.note(q.key, resolved, err) {
		r.wake(who)
	}
}

func (r *resolutions) note(key string, resolved artifact.Resolved, err error) map[client.ObjectKey]bool {
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

// floating says that a version may stand for another one tomorrow.
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

// identity tells references apart, and the credentials that they are opened with.
func identity(ref artifact.Ref) string {
	text, _ := json.Marshal(ref) // of strings and bytes only
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
