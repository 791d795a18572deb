package manager

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/capi"
	"github.com/drover-dev/drover/internal/model/delegation"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/workload"
)

// connections are shared by add-ons and packages: one connection per cluster, and one chart store.
type connections struct {
	capi.Shared

	clusters *workload.Clusters
	charts   *artifact.Store
	// policy decides what add-ons may use.
	policy *delegation.Policy
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
	policy, err := o.delegation(mgr, shared)
	if err != nil {
		return nil, err
	}
	c := &connections{Shared: shared, charts: store, trust: trust, policy: policy}
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

// delegation returns the policy for tenants. The namespaces of Drover belong to no tenant.
func (o Options) delegation(mgr ctrl.Manager, shared capi.Shared) (*delegation.Policy, error) {
	tenants, err := o.tenants()
	if err != nil {
		return nil, err
	}
	return delegation.New(delegation.Options{
		Tenants: tenants, System: []string{o.Namespace, anywherev1.SystemNamespace, packagesv1.Namespace},
		Namespaces: shared.Metadata, Live: mgr.GetAPIReader(), Reviews: mgr.GetClient(), Clock: clock.RealClock{},
	}), nil
}

// tenants returns the selector of tenants' namespaces, or nil if there are none.
func (o Options) tenants() (labels.Selector, error) {
	if o.TenantNamespaces == "" {
		return nil, nil
	}
	return labels.Parse(o.TenantNamespaces)
}
