package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/drover-dev/drover/internal/metal"
)

// fleetRun is the measurement of one fleet size; usages are by process.
type fleetRun struct {
	clusters int
	empty    map[string]usage // before the first cluster
	made     map[string]usage // when all were available
	settled  map[string]usage // when it had settled
	idle     map[string]usage // a while later, with the CPU time in between; only for the last fleet
	ready    time.Duration
	watched  time.Duration
}

// usages measures the processes of the plane, and metal.
func (b *bench) usages(ctx context.Context) (map[string]usage, error) {
	s, err := b.status(ctx)
	if err != nil {
		return nil, err
	}
	e, err := metal.Home{Dir: b.metalHome()}.ReadEndpoint()
	if err != nil {
		return nil, err
	}
	pids := s.processes()
	pids["metal"] = e.PID
	out := map[string]usage{}
	for name, pid := range pids {
		if out[name], err = usageOf(pid); err != nil {
			return nil, fmt.Errorf("measuring %s: %w", name, err)
		}
	}
	return out, nil
}

func total(all map[string]usage) (sum usage) {
	for _, u := range all {
		sum.resident += u.resident
		sum.proportional += u.proportional
		sum.cpu += u.cpu
	}
	return sum
}

// used returns the CPU time of creating the fleet.
func (r fleetRun) used() time.Duration { return total(r.made).cpu - total(r.empty).cpu }

// grown returns the memory of the fleet.
func (r fleetRun) grown() int64 { return total(r.settled).proportional - total(r.empty).proportional }

// ofManager returns the manager's memory per cluster.
func (r fleetRun) ofManager() int64 {
	return (r.settled["manager"].proportional - r.empty["manager"].proportional) / int64(r.clusters)
}

func (r fleetRun) print() {
	name := strconv.Itoa(r.clusters) + " clusters"
	row(name+", all available", "%.0f s, %.1f s of CPU each", r.ready.Seconds(), r.used().Seconds()/float64(r.clusters))
	for _, process := range slices.Sorted(maps.Keys(r.settled)) {
		u := r.settled[process]
		row("· "+process, "%4d MiB, %4d MiB with shared pages, %.0f s of CPU", u.proportional>>20, u.resident>>20, (r.made[process].cpu - r.empty[process].cpu).Seconds())
	}
	all := total(r.settled)
	row("· all", "%4d MiB, %4d MiB with shared pages, %.1f MiB per cluster above the empty plane",
		all.proportional>>20, all.resident>>20, float64(r.grown())/float64(r.clusters)/(1<<20))
	if r.idle == nil {
		return
	}
	for _, process := range slices.Sorted(maps.Keys(r.idle)) {
		u := r.idle[process]
		row(name+" idle · "+process, "%4d MiB, %.2f %% of a core", u.proportional>>20, percent(u.cpu, r.watched))
	}
	idle := total(r.idle)
	row(name+" idle · all", "%4d MiB, %.2f %% of a core", idle.proportional>>20, percent(idle.cpu, r.watched))
}
