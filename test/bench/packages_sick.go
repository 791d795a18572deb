package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// besideSick is the maximum number of measured clusters beside those that hang.
const besideSick = 20

// activateBesideSick activates a bundle while one cluster has hooks that never end, as a bare API
// server runs no Jobs, and another accepts connections without responding. It compares the other
// clusters with the same operation on a healthy fleet, which is measured twice to show the
// variance.
func (w *packageWorld) activateBesideSick(ctx context.Context) error {
	hanging, silent := w.clusters[0], 1
	some := w.clusters[:min(besideSick+2, len(w.clusters))]
	others := some[2:]
	var well [2]packageFigures
	for i, build := range []int{firstBuild, secondBuild} {
		var err error
		if well[i], err = w.activated(ctx, build, others, others); err != nil {
			return err
		}
		row(fmt.Sprintf("%d clusters, none hangs", len(others)), "%s", well[i])
	}
	if err := w.stall(ctx, hanging); err != nil {
		return err
	}
	w.relays[silent].hold()
	defer w.relays[silent].release()
	sick, err := w.activated(ctx, firstBuild, some, others)
	if err != nil {
		return err
	}
	row(fmt.Sprintf("%d clusters, one more unresponsive, one in hooks", len(others)), "%s", sick)
	before := (well[0].took + well[1].took).Seconds() / 2
	row("· compared with the two before", "%.2f times as long; those two differ by %.2f times", sick.took.Seconds()/before, well[1].took.Seconds()/well[0].took.Seconds())
	row("· on the cluster in hooks", "%d of %d packages wait for one", w.hanging(ctx, hanging), w.herd.packages)
	return nil
}

// stall configures all packages of a cluster with a hook that never ends, and waits until Helm runs
// it.
func (w *packageWorld) stall(ctx context.Context, cluster string) error {
	first, stop, err := w.firstAction(ctx, cluster)
	if err != nil {
		return err
	}
	defer stop()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(packageWriters)
	for i := range w.herd.packages {
		p := w.pack(cluster, i)
		group.Go(func() error {
			return w.client.Patch(groupCtx, p, client.RawPatch(mergePatch, []byte(`{"spec":{"config":"stall: true\n"}}`)))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	select {
	case <-first:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hanging returns the number of unfinished packages of a cluster.
func (w *packageWorld) hanging(ctx context.Context, cluster string) int {
	n := 0
	for i := range w.herd.packages {
		p := &packagesv1.Package{}
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(w.pack(cluster, i)), p); err == nil && p.Status.State != packagesv1.StateInstalled {
			n++
		}
	}
	return n
}
