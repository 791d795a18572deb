package capi

import (
	"maps"
	"time"

	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// recheckLimit is the longest interval at which upstream's reconcilers poll something that they
	// can't watch, such as the Pods of a node that is drained. Longer ones are deadlines.
	recheckLimit = 30 * time.Second
	// recheckFirst is the first interval. Later ones are a tenth of the elapsed time, so that the
	// delay stays proportionate.
	recheckFirst    = time.Second
	recheckFraction = 10
)

// polling is an object that a reconciler polls.
type polling struct{ began, last time.Time }

// recheck returns when to poll for a reconciler that requests an interval. Upstream's intervals of
// 15 to 30 seconds suit a Pod that takes minutes to terminate, but a small cluster would spend most
// of a rollout waiting for them: each machine is drained within seconds.
//
//	time passed     0s … 10s … 20s … 1m … 200s and more
//	next interval   1s   1s    2s    6s   20s, as upstream
func recheck(p polling, now time.Time, interval time.Duration) time.Duration {
	return min(max(recheckFirst, now.Sub(p.began)/recheckFraction), interval)
}

// sooner shortens a requested interval while early reconciles are available.
func (q *pacedQueue) sooner(item ctrlreconcile.Request, interval time.Duration, now time.Time) time.Duration {
	if interval <= recheckFirst || interval > recheckLimit {
		return interval
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p, known := q.polled[item]
	if !known || now.Sub(p.last) > 2*recheckLimit {
		p.began = now
	}
	p.last = now
	q.polled[item] = p
	if !q.pace.early.AllowN(now, 1) {
		return interval
	}
	return recheck(p, now, interval)
}

// forgetPolled drops objects that are no longer polled. The caller holds the lock.
func (q *pacedQueue) forgetPolled(now time.Time) {
	maps.DeleteFunc(q.polled, func(_ ctrlreconcile.Request, p polling) bool { return now.Sub(p.last) > 2*recheckLimit })
}
