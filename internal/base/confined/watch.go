package confined

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how often a child without enough CPU time may take longer than its time.
const patience = 10

// watch ends a child that takes too much time.
type watch struct {
	worker *worker

	mu     sync.Mutex
	timer  *time.Timer
	before time.Duration // CPU time of earlier work
	rounds int
}

func (w *worker) watch() *watch {
	s := &watch{worker: w, before: w.cpuTime()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(w.limits.Time, s.check)
	return s
}

// check ends the child, unless the host gave it too little CPU time to be judged.
func (s *watch) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds++
	left := s.worker.limits.Time - (s.worker.cpuTime() - s.before)
	if left > 0 && s.rounds < patience {
		s.timer.Reset(max(left, s.worker.limits.Time/patience))
		return
	}
	s.worker.late.Store(true)
	s.worker.kill()
}

// pause stops the time while the parent works.
func (s *watch) pause() { s.timer.Stop() }

func (s *watch) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Reset(s.worker.limits.Time)
}

func (s *watch) stop() { s.timer.Stop() }

// cpuTime returns the CPU time that the child has used.
func (w *worker) cpuTime() time.Duration {
	// The clock of a process: see clock_getcpuclockid(3).
	clock := int32(^w.cmd.Process.Pid)<<3 | 2
	var used unix.Timespec
	if unix.ClockGettime(clock, &used) != nil {
		return 0 // It has ended.
	}
	return time.Duration(used.Nano())
}
