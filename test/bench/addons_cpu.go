package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// spent is CPU time by process. On few cores all processes share them, so elapsed time follows from
// the sum.
type spent struct {
	manager, server, store, rest, workload, bench time.Duration
}

func (s spent) total() time.Duration {
	return s.manager + s.server + s.store + s.rest + s.workload + s.bench
}

func (s spent) minus(o spent) spent {
	return spent{s.manager - o.manager, s.server - o.server, s.store - o.store, s.rest - o.rest, s.workload - o.workload, s.bench - o.bench}
}

func (s spent) times(x float64) spent {
	by := func(d time.Duration) time.Duration { return time.Duration(float64(d) * x) }
	return spent{by(s.manager), by(s.server), by(s.store), by(s.rest), by(s.workload), by(s.bench)}
}

func (s spent) String() string {
	return fmt.Sprintf("manager %.1f s, management API server %.1f s, its etcd %.1f s, the rest of the plane %.1f s, workload clusters %.1f s, this program %.1f s",
		s.manager.Seconds(), s.server.Seconds(), s.store.Seconds(), s.rest.Seconds(), s.workload.Seconds(), s.bench.Seconds())
}

// spent returns the CPU time used so far.
func (w *addonWorld) spent(ctx context.Context) (s spent, err error) {
	state, err := w.bench.status(ctx)
	if err != nil {
		return s, err
	}
	known := map[string]*time.Duration{"manager": &s.manager, "kube-apiserver": &s.server, "etcd": &s.store}
	for name, pid := range state.processes() {
		t, err := cpuTime(pid)
		if err != nil {
			return s, fmt.Errorf("reading the CPU time of %s: %w", name, err)
		}
		into := known[name]
		if into == nil {
			into = &s.rest
		}
		*into += t
	}
	for _, pid := range children() {
		if t, err := cpuTime(pid); err == nil { // processes may exit at any time
			s.workload += t
		}
	}
	s.bench, err = cpuTime(os.Getpid())
	return s, err
}

// children returns the child processes: the workload clusters, while nothing else runs.
func children() []int {
	var out []int
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has exited
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && len(fields) > 1 && string(fields[1]) == strconv.Itoa(os.Getpid()) {
			out = append(out, pid)
		}
	}
	return out
}
