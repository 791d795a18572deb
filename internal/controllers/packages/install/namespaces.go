package install

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/registry/artifact"
)

// Charts resolves and downloads charts. artifact.Store implements it.
type Charts interface {
	Resolve(ctx context.Context, ref artifact.Ref) (artifact.Resolved, error)
	Fetch(ctx context.Context, ref artifact.Ref, resolved artifact.Resolved) ([]byte, error)
}

// Retry intervals and the timeout of a download.
const (
	firstRetry   = 5 * time.Second
	maxRetry     = 5 * time.Minute
	fetchTimeout = time.Minute
	// keepCharts is the size of the cache, which is cleared when it is full.
	keepCharts = 1000
)

// namespaces caches the default namespaces of charts. It downloads charts beside the controller's
// workers, so that a slow registry blocks no other Package, and each chart once.
type namespaces struct {
	charts Charts
	clock  clock.PassiveClock
	// wake triggers a reconcile of a waiting Package.
	wake func(client.ObjectKey)
	// stop is the context of downloads.
	stop context.Context

	mu    sync.Mutex
	known map[place]*question
}

// place identifies a chart by digest, so that its default namespace never changes.
type place struct{ url, name, digest string }

type question struct {
	answer *string
	err    error
	// access identifies the credentials of the last request.
	access   string
	at       time.Time
	failures int
	asking   bool
	waiting  map[client.ObjectKey]bool
}

// of returns the default namespace, or nil and wakes the caller later. It returns a failure until
// the next retry, or until the credentials change.
func (n *namespaces) of(ref artifact.Ref, who client.ObjectKey) (*string, time.Duration, error) {
	key := place{ref.URL, ref.Name, ref.Version}
	n.mu.Lock()
	defer n.mu.Unlock()
	q := n.known[key]
	if q == nil {
		if n.known == nil || len(n.known) >= keepCharts {
			n.known = map[place]*question{}
		}
		q = &question{waiting: map[client.ObjectKey]bool{}}
		n.known[key] = q
	}
	if q.answer != nil {
		return q.answer, 0, nil
	}
	pause, access := q.pause()-n.clock.Since(q.at), fingerprint(ref.Access)
	if q.err != nil && !q.asking && pause > 0 && q.access == access {
		return nil, pause, q.err
	}
	q.waiting[who] = true
	if !q.asking {
		q.asking, q.access = true, access
		go n.ask(q, ref)
	}
	return nil, 0, q.err
}

// fingerprint identifies an Access without revealing it.
func fingerprint(a artifact.Access) string {
	sum := sha256.New()
	for _, part := range []string{a.Username, a.Password, string(a.DockerConfig), string(a.CA), strconv.FormatBool(a.SkipTLSVerify)} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return string(sum.Sum(nil))
}

func (q *question) pause() time.Duration {
	return min(firstRetry<<min(max(q.failures-1, 0), 10), maxRetry)
}

func (n *namespaces) ask(q *question, ref artifact.Ref) {
	ctx, cancel := context.WithTimeout(n.stop, fetchTimeout)
	defer cancel()
	answer, err := n.read(ctx, ref)
	for who := range n.note(q, answer, err) {
		n.wake(who)
	}
}

func (n *namespaces) read(ctx context.Context, ref artifact.Ref) (string, error) {
	resolved, err := n.charts.Resolve(ctx, ref)
	if err != nil {
		return "", err
	}
	archive, err := n.charts.Fetch(ctx, ref, resolved)
	if err != nil {
		return "", err
	}
	return defaultNamespace(archive)
}

func (n *namespaces) note(q *question, answer string, err error) map[client.ObjectKey]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	q.asking, q.err, q.at = false, err, n.clock.Now()
	if err == nil {
		q.answer = &answer
	} else {
		q.failures++
	}
	waiting := q.waiting
	q.waiting = map[client.ObjectKey]bool{}
	return waiting
}
