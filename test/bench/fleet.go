package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/drover-dev/drover/internal/test/clustertest"
)

const (
	// fleetSpeed makes simulated machines ready in half a second, so that their simulated
	// installation does not dominate.
	fleetSpeed = 60
	// fleetWriters create objects concurrently, as a pipeline would.
	fleetWriters = 8
	// fleetSettle is how long a new fleet settles before it counts as idle: the last reconciles
	// after a change run within a minute.
	fleetSettle = 90 * time.Second
	// fleetPatience is the timeout for the largest fleet on the slowest host.
	fleetPatience = time.Hour
)

// measureFleet creates fleets of clusters with one control plane machine and two workers on
// simulated machines, each on its own plane.
func measureFleet(ctx context.Context, b *bench) error {
	if _, err := b.run(ctx, "down"); err != nil {
		return err
	}
	var runs []fleetRun
	for i, n := range b.fleet {
		r, err := b.runFleet(ctx, n, i == len(b.fleet)-1)
		if err != nil {
			return fmt.Errorf("with %d clusters: %w", n, err)
		}
		r.print()
		runs = append(runs, r)
	}
	first := runs[0]
	for _, r := range runs[1:] {
		more := float64(r.clusters) / float64(first.clusters)
		row(fmt.Sprintf("%d clusters compared with %d, 1.00 is linear", r.clusters, first.clusters), "time %.2f, CPU %.2f, memory above empty %.2f",
			r.ready.Seconds()/first.ready.Seconds()/more, r.used().Seconds()/first.used().Seconds()/more,
			float64(r.grown())/float64(first.grown())/more)
	}
	return nil
}

// runFleet measures one fleet; the last one is also measured while it is idle.
func (b *bench) runFleet(ctx context.Context, n int, watch bool) (fleetRun, error) {
	f := &bench{drover: b.drover, work: b.work, idle: b.idle, home: filepath.Join(b.work, fmt.Sprintf("fleet-%d", n))}
	r := fleetRun{clusters: n}
	err := f.onOwnPlane(ctx, &r, func() error {
		err := f.fill(ctx, &r, f.countClusters, func(ctx context.Context) error { return f.createClusters(ctx, n) })
		if err != nil || !watch {
			return err
		}
		return f.watchIdle(ctx, &r)
	})
	return r, err
}

// onOwnPlane starts a plane and a metal service with simulated machines, measures them while they
// are empty, and removes them after use.
func (b *bench) onOwnPlane(ctx context.Context, r *fleetRun, use func() error) error {
	stop, err := b.startMetal(ctx)
	if err != nil {
		return err
	}
	defer func() {
		b.remove(context.WithoutCancel(ctx))
		stop()
	}()
	if _, err := b.run(ctx, "up", "--metal", "memory"); err != nil {
		return err
	}
	if err := wait(ctx, settle); err != nil {
		return err
	}
	if r.empty, err = b.usages(ctx); err != nil {
		return err
	}
	return use()
}

// fill creates the clusters and waits until follow has counted all as available.
func (b *bench) fill(ctx context.Context, r *fleetRun, follow func(context.Context) (*counter, error), create func(context.Context) error) error {
	counter, err := follow(ctx)
	if err != nil {
		return err
	}
	defer counter.stop()
	began := time.Now()
	if err := create(ctx); err != nil {
		return err
	}
	if err := counter.await(ctx, r.clusters); err != nil {
		return err
	}
	r.ready = time.Since(began)
	if r.made, err = b.usages(ctx); err != nil {
		return err
	}
	if err := wait(ctx, fleetSettle); err != nil {
		return err
	}
	r.settled, err = b.usages(ctx)
	return err
}

func (b *bench) createClusters(ctx context.Context, n int) error {
	project, err := b.project(ctx)
	if err != nil {
		return err
	}
	cl, err := b.client()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fleetWriters)
	for i := range n {
		group.Go(func() error { return createCluster(ctx, cl, project, fmt.Sprintf("c%03d", i)) })
	}
	return group.Wait()
}

func createCluster(ctx context.Context, cl client.Client, project, name string) error {
	manifest, err := clustertest.Render("templates/cluster-template-local.yaml", map[string]string{
		"CLUSTER_NAME": name, "PROJECT_ID": project, "KUBERNETES_VERSION": kubernetes(),
		"CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "2",
	})
	if err != nil {
		return err
	}
	objects, err := utilyaml.ToUnstructured(manifest)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		obj.SetNamespace("default")
		if err := cl.Create(ctx, &obj); err != nil {
			return fmt.Errorf("creating %s %q: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// watchIdle measures the cost of an idle fleet.
func (b *bench) watchIdle(ctx context.Context, r *fleetRun) error {
	if err := wait(ctx, b.idle); err != nil {
		return err
	}
	after, err := b.usages(ctx)
	if err != nil {
		return err
	}
	r.idle, r.watched = map[string]usage{}, b.idle
	for name, u := range after {
		u.cpu -= r.settled[name].cpu
		r.idle[name] = u
	}
	return nil
}

// startMetal starts an accelerated metal service, which the plane will find.
func (b *bench) startMetal(ctx context.Context) (stop func(), err error) {
	if err := os.MkdirAll(b.metalHome(), 0o700); err != nil {
		return nil, err
	}
	log, err := os.Create(b.metalHome() + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(b.drover, "metal", "serve", "--home", b.metalHome(), "--driver", "memory", "--speed", strconv.Itoa(fleetSpeed))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	err = await(ctx, "metal", func() bool {
		_, err := b.run(ctx, "metal", "project", "list")
		return err == nil
	})
	if err != nil {
		stop()
	}
	return stop, err
}
