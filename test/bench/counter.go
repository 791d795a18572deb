package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/test/clustertest"
)

// counter watches the clusters of a plane and counts the available ones.
type counter struct {
	changes chan change
	stop    context.CancelFunc
}

type change struct {
	cluster   string
	available bool
}

// countClusters starts to watch Cluster API clusters.
func (b *bench) countClusters(ctx context.Context) (*counter, error) {
	return b.count(ctx, &clusterv1.Cluster{}, clusterv1.ClusterAvailableCondition)
}

// conditioned is a cluster with conditions.
type conditioned interface {
	client.Object
	conditions.Getter
}

// count starts to watch clusters of a kind, which are available if a condition is true.
func (b *bench) count(ctx context.Context, kind client.Object, condition string) (*counter, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(b.home, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	cl, err := clustertest.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	if err := anywherev1.AddToScheme(cl.Scheme()); err != nil {
		return nil, err
	}
	ctrllog.SetLogger(logr.Discard()) // avoids a warning
	watch, err := cache.New(cfg, cache.Options{Scheme: cl.Scheme(), Mapper: cl.RESTMapper()})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &counter{changes: make(chan change), stop: cancel}
	go func() { _ = watch.Start(ctx) }()
	informer, err := watch.GetInformer(ctx, kind)
	if err != nil {
		cancel()
		return nil, err
	}
	tell := func(obj any) {
		if cluster, ok := obj.(conditioned); ok {
			select {
			case c.changes <- change{cluster.GetName(), conditions.IsTrue(cluster, condition)}:
			case <-ctx.Done():
			}
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }})
	return c, err
}

// await waits until this many clusters are available at once.
func (c *counter) await(ctx context.Context, n int) error {
	available := map[string]bool{}
	deadline := time.After(fleetPatience)
	for len(available) < n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("%d of %d clusters are available after %s", len(available), n, fleetPatience)
		case now := <-c.changes:
			if now.available {
				available[now.cluster] = true
			} else {
				delete(available, now.cluster)
			}
		}
	}
	return nil
}
