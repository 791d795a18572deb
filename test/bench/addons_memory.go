package main

import (
	"context"
	"fmt"
	"time"
)

// held is the manager's memory: the live heap after a garbage collection, and the resident memory.
// The latter depends on when Go collects and releases memory, and so on what happened before.
type held struct{ live, resident int64 }

// since describes the memory per release.
func (h held) since(before held, releases int) string {
	each := func(now, then int64) int64 { return (now - then) >> 10 / int64(releases) }
	return fmt.Sprintf("live %d MiB before, %d MiB after, %d KiB per release; resident %d MiB, %d MiB, %d KiB", before.live>>20, h.live>>20,
		each(h.live, before.live), before.resident>>20, h.resident>>20, each(h.resident, before.resident))
}

// memory returns the manager's memory after an idle period.
func (w *addonWorld) memory(ctx context.Context) (h held, err error) {
	if err := wait(ctx, settle); err != nil {
		return h, err
	}
	if h.live, err = w.live(ctx); err != nil {
		return h, err
	}
	pid, err := w.manager(ctx)
	if err != nil {
		return h, err
	}
	u, err := usageOf(pid)
	h.resident = u.resident
	return h, err
}

// live reads metrics until garbage was collected, which reading causes: they include the live heap
// then.
func (w *addonWorld) live(ctx context.Context) (int64, error) {
	began := -1.0
	for range int(patience / time.Second) {
		raw, err := w.metrics(ctx)
		if err != nil {
			return 0, err
		}
		cycles, err := sum(raw, "go_gc_cycles_total_gc_cycles_total", anyLabel)
		if err != nil {
			return 0, err
		}
		if began < 0 {
			began = cycles
		}
		if cycles >= began+2 { // the first may have started before the idle period
			live, err := sum(raw, "go_gc_heap_live_bytes", anyLabel)
			return int64(live), err
		}
	}
	return 0, fmt.Errorf("the manager did not collect garbage during %d requests", int(patience/time.Second))
}

func anyLabel(map[string]string) bool { return true }

// many measures only the memory of a large number of releases.
func (w *addonWorld) many(ctx context.Context, proxies int) error {
	if proxies == 0 {
		return nil
	}
	before, err := w.memory(ctx)
	if err != nil {
		return err
	}
	n := proxies * addonServers
	installed, err := w.step(ctx, n, func() error { return w.create(ctx, proxies) })
	if err != nil {
		return err
	}
	installed.print(fmt.Sprintf("%d releases by Drover", n))
	after, err := w.memory(ctx)
	if err != nil {
		return err
	}
	row("· memory of the manager", "%s", after.since(before, n))
	return w.remove(ctx)
}
