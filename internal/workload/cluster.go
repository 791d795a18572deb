package workload

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cluster is the connection to one workload cluster. All of it is safe for concurrent use, and clients of it have no limit of their own: how
// much is done at a time is up to the callers.
type Cluster struct {
	key      client.ObjectKey
	identity string
	config   *rest.Config
	http     *http.Client
	breaker  *breaker

	kubernetes kubernetes.Interface
	dynamic    dynamic.Interface
	discovery  discovery.CachedDiscoveryInterface
	mapper     *restmapper.DeferredDiscoveryRESTMapper
	watches    *watches

	mu      sync.Mutex
	version *version.Info
}

func connect(key client.ObjectKey, config *rest.Config, o Options) (*Cluster, error) {
	c := &Cluster{key: key, breaker: newBreaker(key, o.Clock)}
	c.config = rest.CopyConfig(config)
	c.config.QPS, c.config.Burst, c.config.RateLimiter = -1, 0, nil
	c.config.Timeout = 0
	c.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &transport{next: next, timeout: o.RequestTimeout, breaker: c.breaker}
	})
	var err error
	if c.http, err = rest.HTTPClientFor(c.config); err != nil {
		return nil, err
	}
	if c.kubernetes, err = kubernetes.NewForConfigAndClient(c.config, c.http); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(c.config, c.http); err != nil {
		return nil, err
	}
	c.discovery = memory.NewMemCacheClient(c.kubernetes.Discovery())
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(c.discovery)
	objects, err := metadata.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return nil, err
	}
	c.watches = newWatches(key, objects, func(e Event) {
		if e.isCRD() {
			c.forgetKinds()
		}
		o.Notify(e)
	})
	return c, nil
}

// Key names the Cluster.
func (c *Cluster) Key() client.ObjectKey { return c.key }

// Config is for clients of other libraries. Its requests count for the breaker too.
func (c *Cluster) Config() *rest.Config { return c.config }

// HTTP is the client that all others use.
func (c *Cluster) HTTP() *http.Client { return c.http }

// Kubernetes is a client for kinds of Kubernetes.
func (c *Cluster) Kubernetes() kubernetes.Interface { return c.kubernetes }

// Dynamic is a client for all kinds.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Discovery knows the kinds of the cluster. They are asked for once, and again when a CRD changes.
func (c *Cluster) Discovery() discovery.CachedDiscoveryInterface { return c.discovery }

// Mapper finds the resource of a kind, with what Discovery knows. A kind that it does not know makes it ask once more.
func (c *Cluster) Mapper() meta.RESTMapper { return c.mapper }

// Version is that of the API server, asked for once for each connection and again after an hour.
func (c *Cluster) Version() (*version.Info, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version != nil {
		return c.version, nil
	}
	v, err := c.kubernetes.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	c.version = v
	return v, nil
}

// forgetKinds makes the next question go to the cluster.
func (c *Cluster) forgetKinds() { c.mapper.Reset() }

// Reset forgets what is known of the cluster, after an upgrade of its Kubernetes.
func (c *Cluster) Reset() {
	c.mu.Lock()
	c.version = nil
	c.mu.Unlock()
	c.forgetKinds()
}

// Busy says that the cluster does not answer, and until when it is left alone.
func (c *Cluster) Busy() (until time.Time, busy bool) { return c.breaker.state() }

func (c *Cluster) close() {
	c.watches.close()
	c.http.CloseIdleConnections()
}
