package main

import (
	"context"
	"fmt"
	"time"
)

// packageFigures are the costs of a step. The manager counts all requests itself.
type packageFigures struct {
	packages   int
	took       time.Duration
	all        spent
	reconciles float64
	// downloads are chart downloads, and registry all requests to registries.
	downloads, registry, management float64
	workload                        calls
}

// calls are requests to workload clusters. Cluster API probes each of them every ten seconds.
type calls struct{ writes, reads float64 }

func (c calls) all() float64 { return c.writes + c.reads }

func (f packageFigures) String() string {
	n := float64(f.packages)
	return fmt.Sprintf("%.1f s; each %.1f ms of the manager's CPU, %.1f reconciles, %.1f workload and %.1f management requests; %.0f charts downloaded, %.0f requests to the registry in all",
		f.took.Seconds(), f.all.manager.Seconds()*1000/n, f.reconciles/n, f.workload.all()/n, f.management/n, f.downloads, f.registry)
}

// step measures an operation of the manager. Counting has a cost, so CPU time is read last before
// and first after it.
func (w *packageWorld) step(ctx context.Context, packages int, do func() error) (packageFigures, error) {
	before, err := w.counted(ctx)
	if err != nil {
		return before, err
	}
	used, err := w.spent(ctx)
	if err != nil {
		return before, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return before, err
	}
	took := time.Since(began)
	all, err := w.spent(ctx)
	if err != nil {
		return before, err
	}
	after, err := w.counted(ctx)
	return packageFigures{
		packages: packages, took: took, all: all.minus(used), reconciles: after.reconciles - before.reconciles,
		downloads: after.downloads - before.downloads, registry: after.registry - before.registry, management: after.management - before.management,
		workload: calls{writes: after.workload.writes - before.workload.writes, reads: after.workload.reads - before.workload.reads},
	}, err
}

// counted returns the manager's counters.
func (w *packageWorld) counted(ctx context.Context) (f packageFigures, err error) {
	raw, err := w.metrics(ctx)
	if err != nil {
		return f, err
	}
	add := func(to *float64, name string, so func(map[string]string) bool) {
		n, failed := sum(raw, name, so)
		*to += n
		if failed != nil {
			err = failed
		}
	}
	onWorkload := func(label map[string]string) bool { return w.hosts[label["host"]] }
	add(&f.downloads, "drover_artifact_downloads_total", anyLabel)
	for _, name := range []string{"drover_artifact_index_requests_total", "drover_artifact_downloads_total", "drover_packages_bundle_looks_total", "drover_packages_bundle_downloads_total"} {
		add(&f.registry, name, anyLabel)
	}
	add(&f.management, "rest_client_requests_total", func(l map[string]string) bool { return !onWorkload(l) })
	add(&f.workload.writes, "rest_client_requests_total", func(l map[string]string) bool { return onWorkload(l) && l["method"] != "GET" })
	add(&f.workload.reads, "rest_client_requests_total", func(l map[string]string) bool { return onWorkload(l) && l["method"] == "GET" })
	add(&f.reconciles, "controller_runtime_reconcile_total", func(l map[string]string) bool {
		return l["controller"] == "package" || l["controller"] == "helmreleaseproxy" || l["controller"] == "packagebundlecontroller"
	})
	return f, err
}
