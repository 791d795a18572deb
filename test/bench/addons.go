package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	// addonServers is the number of workload clusters, each a real API server.
	addonServers = 8
	// addonWriters is the manager's default concurrency, which the floor uses as well.
	addonWriters = 32
)

// measureAddons installs releases on real API servers, compared with a bare client that writes the
// same objects, and then measures typical operations.
func measureAddons(ctx context.Context, b *bench) error {
	f := &bench{drover: b.drover, work: b.work, idle: b.idle, home: filepath.Join(b.work, "addons")}
	defer f.remove(context.WithoutCancel(ctx))
	if _, err := b.run(ctx, "down"); err != nil {
		return err
	}
	if _, err := f.run(ctx, "up", "--metal", "none"); err != nil {
		return err
	}
	w, err := newAddonWorld(ctx, f)
	if err != nil {
		return err
	}
	defer w.close()
	for _, n := range b.releases {
		if err := w.lifecycle(ctx, n/addonServers); err != nil {
			return fmt.Errorf("with %d releases: %w", n, err)
		}
	}
	if err := w.many(ctx, b.many/addonServers); err != nil {
		return fmt.Errorf("with %d releases: %w", b.many, err)
	}
	return w.blackHole(ctx, b.releases[0]/addonServers)
}

// lifecycle measures the whole life of a number of proxies.
func (w *addonWorld) lifecycle(ctx context.Context, proxies int) error {
	if err := w.install(ctx, proxies); err != nil {
		return err
	}
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"nothing to do, twice", func() error { return w.touch(ctx, proxies) }},
		{"clusters paused and resumed", func() error { return w.hold(ctx) }},
		{"changed values", func() error { return w.revalue(ctx) }},
		{"removed", func() error { return w.remove(ctx) }},
	} {
		got, err := w.step(ctx, proxies*addonServers, s.do)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		row("· "+s.name, "%s", got)
	}
	return nil
}

// install measures installing releases, compared with the floor.
func (w *addonWorld) install(ctx context.Context, proxies int) error {
	n := proxies * addonServers
	floor, err := w.floor(ctx, n, bare)
	if err != nil {
		return err
	}
	floor.print(fmt.Sprintf("%d releases by a bare client", n))
	kept, err := w.floor(ctx, n, w.keeping())
	if err != nil {
		return err
	}
	kept.print("and an object on the plane for each")
	if err := w.dropKept(ctx); err != nil {
		return err
	}
	memory, err := w.memory(ctx)
	if err != nil {
		return err
	}
	installed, err := w.step(ctx, n, func() error { return w.create(ctx, proxies) })
	if err != nil {
		return err
	}
	installed.print(fmt.Sprintf("%d releases by Drover", n))
	row("· timeline", "%s", w.follower.timeline())
	row("· compared with the bare client", "%s", installed.beside(floor))
	row("· compared with the one with objects", "%s", installed.beside(kept))
	grown, err := w.memory(ctx)
	if err != nil {
		return err
	}
	row("· memory of the manager", "%s", grown.since(memory, n))
	return nil
}

// blackHole measures the effect of two silent clusters on the others.
func (w *addonWorld) blackHole(ctx context.Context, proxies int) error {
	const silent = 2
	n := proxies * (addonServers - silent)
	without, err := w.step(ctx, n, func() error {
		for i := range proxies {
			p := w.chart(fmt.Sprintf("addon-%03d", i))
			p.Spec.ClusterSelector.MatchLabels["silent"] = "no"
			if err := w.client.Create(ctx, p); err != nil {
				return err
			}
		}
		return w.awaitReady(ctx, proxies, addonServers-silent)
	})
	if err != nil {
		return err
	}
	if err := w.remove(ctx); err != nil {
		return err
	}
	for _, r := range w.relays[:silent] {
		r.hold()
	}
	with, err := w.step(ctx, n, func() error {
		for i := range proxies {
			if err := w.client.Create(ctx, w.chart(fmt.Sprintf("addon-%03d", i))); err != nil {
				return err
			}
		}
		return w.awaitReady(ctx, proxies, addonServers-silent)
	})
	if err != nil {
		return err
	}
	for _, r := range w.relays[:silent] {
		r.release()
	}
	row(fmt.Sprintf("%d releases, all clusters responsive", n), "%s", without)
	row(fmt.Sprintf("%d releases, %d more clusters unresponsive", n, silent), "%s, %.2f times as long", with, with.took.Seconds()/without.took.Seconds())
	began := time.Now()
	if err := w.awaitReady(ctx, proxies, addonServers); err != nil {
		return err
	}
	row("· until all is installed after they respond again", "%.1f s", time.Since(began).Seconds())
	return w.remove(ctx)
}

func (w *addonWorld) manager(ctx context.Context) (int, error) {
	s, err := w.bench.status(ctx)
	if err != nil {
		return 0, err
	}
	if pid := s.processes()["manager"]; pid != 0 {
		return pid, nil
	}
	return 0, os.ErrProcessDone
}
