package main

import (
	"context"
	"maps"
	"slices"
	"time"
)

// settle is how long a plane settles before it counts as idle.
const settle = 20 * time.Second

func measureIdle(ctx context.Context, b *bench) error {
	if err := b.up(ctx); err != nil {
		return err
	}
	if err := wait(ctx, settle); err != nil {
		return err
	}
	s, err := b.status(ctx)
	if err != nil {
		return err
	}
	before := map[string]usage{}
	for name, pid := range s.processes() {
		if before[name], err = usageOf(pid); err != nil {
			return err
		}
	}
	if err := wait(ctx, b.idle); err != nil {
		return err
	}
	var resident, proportional int64
	var cpu time.Duration
	for _, name := range slices.Sorted(maps.Keys(before)) {
		now, err := usageOf(s.processes()[name])
		if err != nil {
			return err
		}
		used := now.cpu - before[name].cpu
		row(name, "%4d MiB, %4d MiB with shared pages, %.2f %% of a core", now.proportional>>20, now.resident>>20, percent(used, b.idle))
		resident, proportional, cpu = resident+now.resident, proportional+now.proportional, cpu+used
	}
	row("all, shared pages counted once", "%4d MiB", proportional>>20)
	row("all, shared pages counted for each process", "%4d MiB", resident>>20)
	row("all, CPU while idle for "+b.idle.String(), "%.2f %% of a core", percent(cpu, b.idle))
	return nil
}

func percent(used, of time.Duration) float64 { return 100 * used.Seconds() / of.Seconds() }

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
