package confined

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how often a child without enough CPU time may take longer than its time.
const patience = 10

// watch ends a child that takes too much time. The time doesn't count while the parent works, and
// goes on where it stopped after that.
type watch struct {
	worker *worker
	before time.Duration // CPU time of earlier work

	mu    sync.Mutex
	timer *time.Timer
	// since is when the child began or continued to work, or zero while it doesn't.
	since time.Time
	// taken is how long it has worked before that.
	taken time.Duration
}

func (w *worker) watch() *watch {
	s := &watch{worker: w, before: w.cpuTime()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Now()
	s.timer = time.AfterFunc(s.left(), s.check)
	return s
}

// left returns when to check the time again, or nothing if it is up. A child that the host gives
// too little CPU time is not judged before patience ends.
func (s *watch) left() time.Duration {
	limit := s.worker.limits.Time
	cpu := limit - (s.worker.cpuTime() - s.before)
	if cpu <= 0 {
		return 0
	}
	return min(max(cpu, limit/patience), patience*limit-s.taken-time.Since(s.since))
}

// check ends the child if its time is up.
func (s *watch) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return // It stopped working in this moment.
	}
	if left := s.left(); left > 0 {
		s.timer.Reset(left)
		return
	}
	s.worker.late.Store(true)
	s.worker.kill()
}

// pause stops the time while the parent works, or when the work is done.
func (s *watch) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	if !s.since.IsZero() {
		s.taken += time.Since(s.since)
		s.since = time.Time{}
	}
}

func (s *watch) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Now()
	s.timer.Reset(max(s.left(), 0))
}

// cpuTime returns the CPU time that the child has used.
func (w *worker) cpuTime() time.Duration {
	// The clock of a process: see clock_getcpuclockid(3).
	clock := int32(^w.process.Pid)<<3 | 2
	var used unix.Timespec
	if unix.ClockGettime(clock, &used) != nil {
		return 0 // It has ended.
	}
	return time.Duration(used.Nano())
}
