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
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cluster is the connection to one workload cluster. It is safe for concurrent use. Its clients
// have no rate limit: callers limit how much they do at a time.
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

	// origin is the connection that this one impersonates a user on, or nil; users caches those.
	origin *Cluster
	users  *lru.Cache
}

func connect(key client.ObjectKey, config *rest.Config, o Options) (*Cluster, error) {
	c := &Cluster{key: key, breaker: newBreaker(key, o.Clock), users: lru.New(maxUsers)}
	c.config = rest.CopyConfig(config)
	c.config.QPS, c.config.Burst, c.config.RateLimiter = -1, 0, nil
	c.config.Timeout = 0
	c.config.Wrap(Limit(o.RequestTimeout))
	c.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{next: next, breaker: c.breaker} })
	if err := c.newClients(); err != nil {
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

// newClients creates the clients for the configuration.
func (c *Cluster) newClients() (err error) {
	if c.http, err = rest.HTTPClientFor(c.config); err != nil {
		return err
	}
	if c.kubernetes, err = kubernetes.NewForConfigAndClient(c.config, c.http); err != nil {
		return err
	}
	c.dynamic, err = dynamic.NewForConfigAndClient(c.config, c.http)
	return err
}

// Key returns the name of the Cluster.
func (c *Cluster) Key() client.ObjectKey { return c.key }

// Config returns the configuration for clients of other libraries. The circuit breaker observes
// their requests too.
func (c *Cluster) Config() *rest.Config { return c.config }

// HTTP returns the HTTP client that all clients share.
func (c *Cluster) HTTP() *http.Client { return c.http }

// Kubernetes returns a client for built-in kinds.
func (c *Cluster) Kubernetes() kubernetes.Interface { return c.kubernetes }

// Dynamic returns a client for all kinds.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Discovery returns the kinds of the cluster. They are cached until a CRD changes.
func (c *Cluster) Discovery() discovery.CachedDiscoveryInterface { return c.discovery }

// Mapper maps kinds to resources. An unknown kind makes it refresh Discovery once.
func (c *Cluster) Mapper() meta.RESTMapper { return c.mapper }

// Version returns the version of the API server. It is read once per connection and again after
// Reset.
func (c *Cluster) Version() (*version.Info, error) {
	if c.origin != nil {
		return c.origin.Version()
	}
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

// forgetKinds drops the cached kinds.
func (c *Cluster) forgetKinds() { c.mapper.Reset() }

// Reset drops what is cached about the cluster, after an upgrade of its Kubernetes.
func (c *Cluster) Reset() {
	if c.origin != nil {
		c.origin.Reset()
		return
	}
	c.mu.Lock()
	c.version = nil
	c.mu.Unlock()
	c.forgetKinds()
}

// Busy reports whether the cluster is unreachable, and until when no requests are made.
func (c *Cluster) Busy() (until time.Time, busy bool) { return c.breaker.state() }

func (c *Cluster) close() {
	c.watches.close()
	c.http.CloseIdleConnections()
}
