// Package operation runs long operations on clusters, such as installing, upgrading and
// uninstalling, outside the workers of a controller. Each object has one operation at a time.
// Clusters take turns and have a limited number of slots each, so that a slow or unreachable
// cluster delays no other.
//
// It knows neither releases nor tools. A controller starts an operation and is notified when it
// ends. Start with Runner.
package operation

import (
	"context"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Work is an operation. Do must return soon after its context ends.
type Work struct {
	// For is the object that the operation belongs to.
	For client.ObjectKey
	// Cluster is where the operation runs.
	Cluster client.ObjectKey
	// Subject distinguishes operations for the same object, see Runner.Running.
	Subject string
	Do      func(ctx context.Context) (any, error)
}

// Outcome is the result of an operation.
type Outcome struct {
	Subject string
	Value   any
	Err     error
}

// Limits limit concurrent operations.
type Limits struct {
	Total, PerCluster int
}

// Runner runs operations.
//
//	Start ──▶ waiting for a slot ──▶ running ──▶ ended ──ended is called──▶ Take
type Runner struct {
	limits Limits
	ended  func(client.ObjectKey)

	ctx context.Context
	all sync.WaitGroup

	mu      sync.Mutex
	running int
	jobs    map[client.ObjectKey]*job
	lanes   map[client.ObjectKey]*clusterQueue
	// turns are the clusters with waiting operations, next first.
	turns []client.ObjectKey
}

type job struct {
	work    Work
	since   time.Time
	ctx     context.Context
	cancel  context.CancelFunc
	outcome *Outcome
}

type clusterQueue struct {
	waiting []*job
	running int
}

// New returns a runner whose operations end with ctx. It calls ended, which must not block, after
// each operation.
func New(ctx context.Context, limits Limits, ended func(client.ObjectKey)) *Runner {
	return &Runner{ctx: ctx, limits: limits, ended: ended, jobs: map[client.ObjectKey]*job{}, lanes: map[client.ObjectKey]*clusterQueue{}}
}

// Start starts or queues an operation. It returns false and does nothing if the object already has
// one whose outcome wasn't taken.
func (r *Runner) Start(w Work) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.jobs[w.For] != nil || r.ctx.Err() != nil {
		return false
	}
	j := &job{work: w, since: time.Now()}
	j.ctx, j.cancel = context.WithCancel(r.ctx)
	r.jobs[w.For] = j
	l := r.lanes[w.Cluster]
	if l == nil {
		l = &clusterQueue{}
		r.lanes[w.Cluster] = l
	}
	l.waiting = append(l.waiting, j)
	if !slices.Contains(r.turns, w.Cluster) {
		r.turns = append(r.turns, w.Cluster)
	}
	r.dispatch()
	return true
}

// Running returns the subject and the start time of the current operation of an object.
func (r *Runner) Running(key client.ObjectKey) (subject string, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.jobs[key]
	if j == nil || j.outcome != nil {
		return "", time.Time{}
	}
	return j.work.Subject, j.since
}

// Cancel cancels the operation of an object. It still has an outcome.
func (r *Runner) Cancel(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.jobs[key]; j != nil {
		j.cancel()
	}
}

// Take returns the outcome of the last operation of an object, once.
func (r *Runner) Take(key client.ObjectKey) (Outcome, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.jobs[key]
	if j == nil || j.outcome == nil {
		return Outcome{}, false
	}
	delete(r.jobs, key)
	return *j.outcome, true
}

// Wait returns when all started operations have ended.
func (r *Runner) Wait() { r.all.Wait() }

// dispatch gives free slots to clusters in turn.
func (r *Runner) dispatch() {
	for passed := 0; passed < len(r.turns) && r.running < r.limits.Total; {
		cluster := r.turns[0]
		r.turns = r.turns[1:]
		l := r.lanes[cluster]
		if l.running >= r.limits.PerCluster {
			r.turns = append(r.turns, cluster)
			passed++
			continue
		}
		passed = 0
		next := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.running++
		r.running++
		if len(l.waiting) > 0 {
			r.turns = append(r.turns, cluster)
		}
		r.all.Add(1)
		go r.run(next)
	}
}

func (r *Runner) run(j *job) {
	defer r.all.Done()
	defer j.cancel()
	outcome := Outcome{Subject: j.work.Subject}
	if outcome.Err = j.ctx.Err(); outcome.Err == nil {
		outcome.Value, outcome.Err = j.work.Do(j.ctx)
	}
	r.end(j, outcome)
	r.ended(j.work.For)
}

func (r *Runner) end(j *job, outcome Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j.outcome = &outcome
	r.running--
	l := r.lanes[j.work.Cluster]
	l.running--
	if l.running == 0 && len(l.waiting) == 0 {
		delete(r.lanes, j.work.Cluster)
	}
	r.dispatch()
}
