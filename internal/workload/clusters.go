package workload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Configs returns the configuration of a cluster. Cluster API's ClusterCache implements it.
type Configs interface {
	GetRESTConfig(ctx context.Context, cluster client.ObjectKey) (*rest.Config, error)
}

// Options apply to all connections.
type Options struct {
	// Notify is called for every change on a cluster. It must not block.
	Notify func(Event)
	// RequestTimeout limits each request except watches. The default is 15s.
	RequestTimeout time.Duration
	// Clock is replaced in tests.
	Clock clock.WithTicker
}

// Clusters manages the connections.
type Clusters struct {
	configs Configs
	options Options

	mu   sync.Mutex
	open map[client.ObjectKey]*Cluster
}

// New returns a Clusters without connections. Each is opened on first use.
func New(configs Configs, o Options) *Clusters {
	if o.RequestTimeout == 0 {
		o.RequestTimeout = 15 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Notify == nil {
		o.Notify = func(Event) {}
	}
	return &Clusters{configs: configs, options: o, open: map[client.ObjectKey]*Cluster{}}
}

// Get returns the connection to a cluster without making a request. It returns an UnreachableError
// if the cluster didn't respond recently, and the error of Configs for an unknown cluster.
func (c *Clusters) Get(ctx context.Context, key client.ObjectKey) (*Cluster, error) {
	config, err := c.configs.GetRESTConfig(ctx, key)
	if err != nil {
		return nil, err
	}
	cluster, err := c.connection(key, config)
	if err != nil {
		return nil, err
	}
	if err := cluster.breaker.allow(); err != nil {
		return nil, err
	}
	return cluster, nil
}

// Forget closes the connection to a cluster that is gone.
func (c *Clusters) Forget(key client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(key)
}

// Close closes all connections.
func (c *Clusters) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.open {
		c.forget(key)
	}
}

func (c *Clusters) connection(key client.ObjectKey, config *rest.Config) (*Cluster, error) {
	identity := identify(config)
	c.mu.Lock()
	defer c.mu.Unlock()
	if open := c.open[key]; open != nil {
		if open.identity == identity {
			return open, nil
		}
		c.forget(key)
	}
	cluster, err := connect(key, config, c.options)
	if err != nil {
		return nil, fmt.Errorf("connecting to cluster %q: %w", key, err)
	}
	cluster.identity = identity
	c.open[key] = cluster
	return cluster, nil
}

func (c *Clusters) forget(key client.ObjectKey) {
	if open := c.open[key]; open != nil {
		open.close()
		delete(c.open, key)
	}
}

// identify returns a digest of the address and the credentials of a configuration, and of the way
// to it.
func identify(config *rest.Config) string {
	sum := sha256.New()
	for _, part := range [][]byte{
		[]byte(config.Host), []byte(config.ServerName), []byte(config.BearerToken), config.CAData, config.CertData, config.KeyData,
		[]byte(config.Username), []byte(config.Password), []byte(proxyOf(config)), strconv.AppendBool(nil, config.Insecure),
	} {
		fmt.Fprintf(sum, "%d:", len(part))
		sum.Write(part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// proxyOf returns the URL of the proxy of a configuration, or nothing.
func proxyOf(config *rest.Config) string {
	to, err := url.Parse(config.Host)
	if config.Proxy == nil || err != nil {
		return ""
	}
	through, err := config.Proxy(&http.Request{URL: to})
	if through == nil || err != nil {
		return ""
	}
	return through.String()
}
