// Package operation runs what takes long on clusters, besides the workers of a controller: installing, upgrading, removing. Each release
// has one operation at a time; clusters take turns, and each has a few slots only, so that one that is slow or silent holds up nobody
// else.
//
// It knows neither releases nor tools. A controller starts an operation and is told when it has ended. Start with Runner.
package operation

import (
	"context"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Work is an operation. It should end soon after its context does.
type Work struct {
	// For is the object that the operation belongs to.
	For client.ObjectKey
	// Cluster is where it happens.
	Cluster client.ObjectKey
	// Subject tells operations for the same object apart, see Runner.Running.
	Subject string
	Do      func(ctx context.Context) (any, error)
}

// Outcome is how an operation ended.
type Outcome struct {
	Subject string
	Value   any
	Err     error
}

// Limits bound how much happens at a time.
type Limits struct {
	Total, PerCluster int
}

// Runner runs operations.
//
//	Start ──▶ waiting for a slot ──▶ running ──▶ ended ──Ended is told──▶ Take
type Runner struct {
	limits Limits
	ended  func(client.ObjectKey)

	ctx context.Context
	all sync.WaitGroup

	mu      sync.Mutex
	running int
	jobs    map[client.ObjectKey]*job
	lanes   map[client.ObjectKey]*lane
	// turns are the clusters with something waiting, the next one first.
	turns []client.ObjectKey
}

type job struct {
	work    Work
	since   time.Time
	ctx     context.Context
	cancel  context.CancelFunc
	outcome *Outcome
}

type lane struct {
	waiting []*job
	running int
}

// New returns a runner whose operations end with ctx. It calls ended, which must not block, when an operation has.
func New(ctx context.Context, limits Limits, ended func(client.ObjectKey)) *Runner {
	return &Runner{ctx: ctx, limits: limits, ended: ended, jobs: map[client.ObjectKey]*job{}, lanes: map[client.ObjectKey]*lane{}}
}

// Start begins an operation, or puts it into the queue. It returns false, and does nothing, if the object has one already whose outcome
// was not taken yet.
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
		l = &lane{}
		r.lanes[w.Cluster] = l
	}
	l.waiting = append(l.waiting, j)
	if !slices.Contains(r.turns, w.Cluster) {
		r.turns = append(r.turns, w.Cluster)
	}
	r.dispatch()
	return true
}

// Running returns the subject of the operation that an object has under way, and since when.
func (r *Runner) Running(key client.ObjectKey) (subject string, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.jobs[key]
	if j == nil || j.outcome != nil {
		return "", time.Time{}
	}
	return j.work.Subject, j.since
}

// Cancel asks the operation of an object to end. It still has an outcome.
func (r *Runner) Cancel(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.jobs[key]; j != nil {
		j.cancel()
	}
}

// Take returns how the last operation of an object ended, once.
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

// Wait returns when everything that was started has ended.
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
