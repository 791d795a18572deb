// Package capi wires upstream Cluster API into one controller-runtime manager: the core, kubeadm
// bootstrap and kubeadm control plane reconcilers with their webhooks, one cache and one set of
// connections to workload clusters.
//
// It owns the wiring and the pace of reconcilers. It reconciles nothing itself and changes nothing
// upstream. Upstream runs three managers that each restrict their cache to what they read; cache.go
// and workload.go contain the union, which is the critical part. Start with Setup, then the two
// tables: controllers.go and webhooks.go.
package capi

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/cluster-api/util/index"

	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/drover-dev/drover/internal/controllers/capi/hooks"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// Upstream defaults that need no flag here.
const (
	remoteConnectionGracePeriod = 50 * time.Second
	remoteConditionsGracePeriod = 5 * time.Minute
	etcdDialTimeout             = 10 * time.Second
	etcdCallTimeout             = 15 * time.Second
	workloadQPS                 = 20
	workloadBurst               = 30
	cacheSyncTimeout            = 5 * time.Minute
)

// Options configure the wiring.
type Options struct {
	// WatchNamespace limits the reconcilers to one namespace; empty means all.
	WatchNamespace string
	// WatchFilter limits the reconcilers to objects with this value of the watch label; empty means
	// all.
	WatchFilter string
	// Concurrency is the number of objects of one kind that are reconciled concurrently.
	Concurrency int
	// SyncPeriod is how often every object is reconciled without a change.
	SyncPeriod time.Duration
	// EtcdLogger is the logger of the etcd clients of kubeadm control planes.
	EtcdLogger *zap.Logger
}

// EnableFeatures sets the feature gates of this process. RuntimeSDK stays off: it is for servers of
// hooks, and package hooks serves those of in-place updates in this process.
// ReconcilerRateLimiting also stays off: package reconcile and pace replace it. It must run before
// ManagerOptions and Setup.
func EnableFeatures() error {
	err := feature.MutableGates.SetFromMap(map[string]bool{
		string(feature.ClusterTopology): true, string(feature.InPlaceUpdates): true, string(feature.ReconcilerRateLimiting): false,
	})
	if err != nil {
		return fmt.Errorf("setting feature gates of Cluster API: %w", err)
	}
	return nil
}

// ManagerOptions returns the options of a manager that upstream's reconcilers depend on.
func ManagerOptions(o Options) ctrl.Options {
	usePriorityQueue := feature.Gates.Enabled(feature.PriorityQueue)
	return ctrl.Options{
		Controller: config.Controller{UsePriorityQueue: &usePriorityQueue, CacheSyncTimeout: cacheSyncTimeout},
		Cache:      cacheOptions(o),
		Client:     clientOptions(),
	}
}

// Shared is available to other controllers.
type Shared struct {
	// Workloads connects to workload clusters.
	Workloads clustercache.ClusterCache
	// Metadata watches the metadata of any requested kind, such as all Secrets.
	Metadata ctrlcache.Cache
	// Hooks serves the runtime hooks. Handlers are added before the manager starts.
	Hooks *hooks.Client
}

// Setup adds every reconciler and webhook to mgr, which must have been created by
// reconcile.NewManager with ManagerOptions.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) (Shared, error) {
	if err := index.AddDefaultIndexes(ctx, mgr); err != nil {
		return Shared{}, fmt.Errorf("adding indexes: %w", err)
	}
	w, err := newWiring(ctx, mgr, o)
	if err != nil {
		return Shared{}, err
	}
	for _, c := range controllers {
		if err := c.setup(ctx, w); err != nil {
			return Shared{}, fmt.Errorf("adding controller %q: %w", c.name, err)
		}
	}
	if err := watchPods(ctx, w); err != nil {
		return Shared{}, fmt.Errorf("watching control planes: %w", err)
	}
	setAPIVersionGetters(mgr.GetClient())
	for _, hook := range webhooks {
		if err := hook.setup(w); err != nil {
			return Shared{}, fmt.Errorf("adding webhook %q: %w", hook.name, err)
		}
	}
	return Shared{Workloads: w.workloads, Metadata: w.secretMetadata, Hooks: w.hooks}, nil
}

// wiring is the input of both tables.
type wiring struct {
	Options
	mgr    ctrl.Manager
	pace   *pace
	hooks  *hooks.Client
	events record.EventRecorder
	// client reads from the shared cache, except for Secrets and ConfigMaps.
	client client.Client
	// reader reads from the API server.
	reader client.Reader
	// secrets reads Secrets of clusters from the shared cache.
	secrets client.Client
	// secretMetadata watches the metadata of all Secrets, for those that belong to no single
	// cluster.
	secretMetadata ctrlcache.Cache
	// links leads upstream's clients to workload clusters.
	links *links
	// workloads connects to workload clusters and never reads Pods from a cache.
	workloads clustercache.ClusterCache
	// controlPlanes reads static Pods of the control plane from its cache, and its configurations
	// are for etcd only.
	controlPlanes clustercache.ClusterCache
}

func newWiring(ctx context.Context, mgr ctrl.Manager, o Options) (*wiring, error) {
	w := &wiring{Options: o, mgr: mgr, pace: newPace(), hooks: hooks.New(), client: mgr.GetClient(), reader: mgr.GetAPIReader()}
	w.events = mgr.GetEventRecorderFor("drover") //nolint:staticcheck // Cluster API's reconcilers write events of the same kind
	var err error
	if w.secrets, err = secretClient(mgr); err != nil {
		return nil, fmt.Errorf("creating the client for Secrets: %w", err)
	}
	if w.secretMetadata, err = secretMetadataCache(mgr, o); err != nil {
		return nil, fmt.Errorf("creating the metadata cache for Secrets: %w", err)
	}
	if err := w.connect(ctx); err != nil {
		return nil, fmt.Errorf("creating connections to workload clusters: %w", err)
	}
	return w, nil
}

// connect sets up the connections to workload clusters.
func (w *wiring) connect(ctx context.Context) error {
	var err error
	if w.links, err = linksOf(ctx, w.mgr.GetCache()); err != nil {
		return err
	}
	upstream, err := clustercache.SetupWithManager(ctx, w.mgr, w.workloadOptions(), w.options("ClusterCache"))
	if err != nil {
		return err
	}
	retrySoon(upstream)
	limited := connections{ClusterCache: upstream, links: w.links}
	w.controlPlanes = tunnels{limited}
	w.workloads = livePods{limited}
	return nil
}

// options returns the options of a reconciler.
func (w *wiring) options(name string) controller.Options {
	guard := reconcile.NewGuard(w.mgr, name)
	o := guard.Options(controller.Options{MaxConcurrentReconciles: w.Concurrency})
	o.NewQueue = w.pace.newQueue(guard)
	return o
}
