package manager

import (
	"context"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/drover-dev/drover/internal/controllers/capi"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/workload"
)

// connections are shared by add-ons and packages: one connection per cluster, and one chart store.
type connections struct {
	capi.Shared

	clusters *workload.Clusters
	charts   *artifact.Store
	// trust configures access to registries without settings of their own.
	trust map[string]artifact.Access

	mu        sync.RWMutex
	listeners []func(workload.Event)
}

// connect prepares connections. They are closed with the manager.
func (o Options) connect(mgr ctrl.Manager, shared capi.Shared) (*connections, error) {
	trust, err := artifact.TrustRegistry(o.RegistryURL, o.RegistryCA)
	if err != nil {
		return nil, err
	}
	charts := o.chartOptions(trust)
	charts.Metrics = metrics.Registry
	store, err := artifact.Open(charts)
	if err != nil {
		return nil, err
	}
	c := &connections{Shared: shared, charts: store, trust: trust}
	c.clusters = workload.New(shared.Workloads, workload.Options{Notify: c.notify})
	return c, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		c.clusters.Close()
		c.charts.Close()
		return nil
	}))
}

// listen subscribes to changes on clusters.
func (c *connections) listen(to func(workload.Event)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = append(c.listeners, to)
}

func (c *connections) notify(e workload.Event) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, to := range c.listeners {
		to(e)
	}
}
