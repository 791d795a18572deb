package main

import (
	"context"
	"fmt"
	"time"
)

// figures are the costs of a step.
type figures struct {
	releases int
	took     time.Duration
	// cpu is the manager's CPU time, and all that of all processes.
	cpu time.Duration
	all spent
	// reconciles are those of HelmChartProxies and HelmReleaseProxies.
	reconciles                      float64
	workload, management, downloads float64
}

func (f figures) String() string {
	n := float64(f.releases)
	return fmt.Sprintf("%.1f s; each %.1f ms of the manager's CPU, %.1f reconciles, %.1f workload and %.1f management requests; %.0f to the repository in all",
		f.took.Seconds(), f.cpu.Seconds()*1000/n, f.reconciles/n, f.workload/n, f.management/n, f.downloads)
}

// print prints all of them.
func (f figures) print(name string) {
	row(name, "%s", f)
	row("· CPU", "%s", f.all)
}

// beside compares with figures for the same number of releases. Compare CPU time where cores are
// shared.
func (f figures) beside(o figures) string {
	return fmt.Sprintf("%.1f times as long, %.1f times the CPU of all", f.took.Seconds()/o.took.Seconds(), f.all.total().Seconds()/o.all.total().Seconds())
}

// step measures an operation of the manager.
func (w *addonWorld) step(ctx context.Context, releases int, do func() error) (figures, error) {
	f, err := w.measure(ctx, func() error {
		w.follower.restart()
		return do()
	})
	if err != nil {
		return f, err
	}
	seconds := f.took.Seconds()
	f.releases = releases
	f.workload -= w.idle.workload * seconds
	f.management -= w.idle.management * seconds
	f.all = f.all.minus(w.idle.all.times(seconds))
	f.cpu = f.all.manager
	return f, nil
}

// measure measures an operation. Counting has a cost, so CPU time is read last before and first
// after it.
func (w *addonWorld) measure(ctx context.Context, do func() error) (figures, error) {
	before, err := w.count(ctx)
	if err != nil {
		return figures{}, err
	}
	if before.all, err = w.spent(ctx); err != nil {
		return figures{}, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return figures{}, err
	}
	took := time.Since(began)
	all, err := w.spent(ctx)
	if err != nil {
		return figures{}, err
	}
	after, err := w.count(ctx)
	return figures{
		took: took, all: all.minus(before.all), downloads: after.downloads - before.downloads, reconciles: after.reconciles - before.reconciles,
		workload: after.workload - before.workload, management: after.management - before.management,
	}, err
}

// listen measures the requests per second and the CPU time of idle API servers.
func (w *addonWorld) listen(ctx context.Context) error {
	const long = 10 * time.Second
	f, err := w.measure(ctx, func() error { return wait(ctx, long) })
	w.idle = figures{
		workload: f.workload / long.Seconds(), management: f.management / long.Seconds(), all: f.all.times(1 / long.Seconds()),
	}
	return err
}

func (w *addonWorld) count(ctx context.Context) (f figures, err error) {
	if f.reconciles, err = w.reconciles(ctx); err != nil {
		return f, err
	}
	f.downloads = float64(len(w.charts.Requests()))
	if f.management, err = requests(ctx, w.direct); err != nil {
		return f, err
	}
	for _, s := range w.servers {
		n, err := requests(ctx, s.Clientset(w.cleanups))
		if err != nil {
			return f, err
		}
		f.workload += n
	}
	return f, nil
}
