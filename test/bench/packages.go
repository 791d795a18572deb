package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// packageServers is the number of API servers that all clusters share: one per cluster would not
// fit on a machine.
const packageServers = 4

// Builds of the bundle. Each has other charts, so that activating one changes every package and
// requires downloads.
const (
	firstBuild = 101 + iota
	secondBuild
	thirdBuild
)

// packageLoad returns the number of packages.
type packageLoad struct {
	clusters, packages int
	// idle is the duration of the idle measurement.
	idle time.Duration
}

// measurePackages installs package bundles on many clusters, measures them idle, and activates
// others.
func measurePackages(ctx context.Context, b *bench) error {
	if b.herd.clusters < packageServers {
		return fmt.Errorf("packages require at least %d clusters", packageServers)
	}
	f := &bench{drover: b.drover, work: b.work, herd: b.herd, home: filepath.Join(b.work, "packages")}
	defer f.remove(context.WithoutCancel(ctx))
	if _, err := b.run(ctx, "down"); err != nil {
		return err
	}
	if _, err := f.run(ctx, "up", "--metal", "none"); err != nil {
		return err
	}
	w, err := newPackageWorld(ctx, f)
	if err != nil {
		return err
	}
	defer w.close()
	row("size", "%d clusters on %d API servers, %d packages each", len(w.clusters), packageServers, w.herd.packages)
	for _, s := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"being empty", w.measureEmpty},
		{"installing", w.installAll},
		{"being idle", w.measureIdle},
		{"activating on one cluster", w.activateOne},
		{"activating on all", w.activateAll},
		{"activating next to clusters that hang", w.activateBesideSick},
	} {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// installAll creates all packages and waits until they are installed.
func (w *packageWorld) installAll(ctx context.Context) error {
	before, err := w.memory(ctx)
	if err != nil {
		return err
	}
	n := len(w.clusters) * w.herd.packages
	got, err := w.step(ctx, n, func() error {
		if err := w.createPackages(ctx); err != nil {
			return err
		}
		return w.awaitBuild(ctx, firstBuild, w.clusters)
	})
	if err != nil {
		return err
	}
	row(fmt.Sprintf("%d packages installed", n), "%s", got)
	row("· CPU", "%s", got.all)
	after, err := w.memory(ctx)
	if err != nil {
		return err
	}
	row("· memory of the manager", "%s", after.since(before, n))
	return nil
}

// measureIdle measures the idle cost.
func (w *packageWorld) measureIdle(ctx context.Context) error {
	return w.measureQuiet(ctx, "idle with all packages", w.herd.idle)
}

// measureEmpty measures the baseline: all clusters are connected, and have no package yet.
func (w *packageWorld) measureEmpty(ctx context.Context) error {
	if err := wait(ctx, settle); err != nil {
		return err
	}
	return w.measureQuiet(ctx, "idle without packages", min(time.Minute, w.herd.idle))
}

func (w *packageWorld) measureQuiet(ctx context.Context, name string, long time.Duration) error {
	got, err := w.step(ctx, 1, func() error { return wait(ctx, long) })
	if err != nil {
		return err
	}
	minutes := got.took.Minutes()
	row(fmt.Sprintf("%s for %s, in a minute", name, long), "%.1f requests to registries; %.1f writes to workload clusters and %.1f reads from them",
		got.registry/minutes, got.workload.writes/minutes, got.workload.reads/minutes)
	row("· CPU of the manager", "%.2f s in a minute", got.all.manager.Seconds()/minutes)
	row("· reconciles of packages", "%.0f in all", got.reconciles)
	return nil
}

// activateOne activates a bundle on one cluster.
func (w *packageWorld) activateOne(ctx context.Context) error {
	one := w.clusters[:1]
	first, stop, err := w.firstAction(ctx, one[0])
	if err != nil {
		return err
	}
	defer stop()
	var began, acted time.Time
	got, err := w.step(ctx, w.herd.packages, func() error {
		began = time.Now()
		if err := w.activate(ctx, secondBuild, one); err != nil {
			return err
		}
		select {
		case acted = <-first:
		case <-ctx.Done():
			return ctx.Err()
		}
		return w.awaitBuild(ctx, secondBuild, one)
	})
	if err != nil {
		return err
	}
	row("a new bundle on one cluster", "Helm's first action after %.2f s; all %d packages after %s", acted.Sub(began).Seconds(), w.herd.packages, got)
	return nil
}

// activateAll activates a bundle on all clusters at once.
func (w *packageWorld) activateAll(ctx context.Context) error {
	got, err := w.activated(ctx, thirdBuild, w.clusters, w.clusters)
	if err != nil {
		return err
	}
	row(fmt.Sprintf("a new bundle on all %d clusters", len(w.clusters)), "%s", got)
	row("· CPU", "%s", got.all)
	return nil
}

// activated activates a bundle on some clusters, and waits for some of them.
func (w *packageWorld) activated(ctx context.Context, build int, on, awaited []string) (packageFigures, error) {
	return w.step(ctx, len(awaited)*w.herd.packages, func() error {
		if err := w.activate(ctx, build, on); err != nil {
			return err
		}
		return w.awaitBuild(ctx, build, awaited)
	})
}
