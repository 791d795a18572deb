package memory

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	inmemory "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime/manager"
	inmemoryapi "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server/api"
	inmemoryetcd "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server/etcd"

	"github.com/drover-dev/drover/internal/metal/driver"
)

// apiPort is the default port of API servers.
const apiPort = 6443

// joinTimeout is how long a worker waits for its cluster's API.
const joinTimeout = 5 * time.Minute

// clusters are the workload clusters of simulated machines. The objects of a cluster are in a
// resource group of the in-memory backend of Cluster API; the servers in front are ours, because
// every machine has its own address.
type clusters struct {
	backend inmemory.Manager
	server  *http.Server
	api     http.Handler
	etcd    http.Handler
	log     *slog.Logger
	cancel  context.CancelFunc
	serving sync.WaitGroup

	deletions deletions
	externals *externals
	// mayAnnounce reports whether a machine may announce an address with BGP.
	mayAnnounce func(id string, address netip.Addr) bool

	mu       sync.Mutex
	byID     map[string]*cluster
	nodes    map[string]*node          // by machine
	fronts   map[netip.AddrPort]*front // by address
	groups   groups
	shutdown bool
}

// cluster is one workload cluster.
type cluster struct {
	id       string
	ca, etcd *authority
	version  string
	up       chan struct{} // closed when the first API server serves
	nodes    int
	joining  int                    // workers waiting for the API
	group    string                 // resource group of the backend
	configs  map[string]*tls.Config // by server
}

// node is a machine that is part of a cluster.
type node struct {
	cluster *cluster
	boot    *bootstrap
	machine driver.Machine
	elastic func() []netip.Addr // its current elastic addresses
	on      bool
}

// front is an address that serves a cluster's API.
type front struct {
	cluster  *cluster
	machine  string
	names    []string // additional names in its certificate
	listener *listener
}

func newClusters(log *slog.Logger) (*clusters, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c := &clusters{
		backend: inmemory.New(scheme), log: log,
		byID: map[string]*cluster{}, nodes: map[string]*node{}, fronts: map[netip.AddrPort]*front{}, deletions: deletions{last: map[string]uint64{}},
		mayAnnounce: func(string, netip.Addr) bool { return false }, externals: newExternals(log),
	}
	if err := c.watchDeletions(); err != nil {
		return nil, err
	}
	quiet := logr.Discard()
	c.api = inmemoryapi.NewAPIServerHandler(c.backend, quiet, c.groupOf)
	c.etcd = inmemoryetcd.NewEtcdServerHandler(c.backend, quiet, c.groupAt)
	c.server = &http.Server{
		Handler: c, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		TLSConfig: &tls.Config{GetConfigForClient: c.tlsConfig, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}},
	}
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), quiet))
	c.cancel = cancel
	return c, c.backend.Start(ctx)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	var errs []error
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, storagev1.AddToScheme, policyv1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		errs = append(errs, add(scheme))
	}
	return scheme, errors.Join(errs...)
}

// boot executes the userdata of a machine.
func (c *clusters) boot(ctx context.Context, m driver.Machine, elastic func() []netip.Addr) error {
	member, err := parseMember(m)
	if err != nil {
		return err
	}
	if member != nil {
		return c.externals.boot(member, m, elastic)
	}
	b, err := parseUserdata(m)
	if err != nil || b == nil {
		return err
	}
	n := &node{boot: b, machine: m, elastic: elastic, on: true}
	if b.controlPlane {
		return c.startControlPlane(ctx, n)
	}
	return c.joinWorker(ctx, n)
}

// startControlPlane starts an API server and an etcd member. The first machine creates the cluster,
// whether its userdata says init or join: after a restart of this process, the machine with init
// may no longer exist.
func (c *clusters) startControlPlane(ctx context.Context, n *node) error {
	ca, err := parseAuthority(n.boot.ca)
	if err != nil {
		return fmt.Errorf("reading the cluster's CA: %w", err)
	}
	etcd, err := parseAuthority(n.boot.etcdCA)
	if err != nil {
		etcd = nil // External etcd has no member here.
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.find(n.boot)
	k.ca, k.etcd = ca, etcd
	if n.boot.version != "" {
		k.version = n.boot.version
	}
	c.enlist(k, n)
	if err := c.clusterObjects(ctx, k, n); err != nil {
		return err
	}
	if err := c.nodeObjects(ctx, k, n); err != nil {
		return err
	}
	if err := c.serveOn(n); err != nil {
		return err
	}
	if !isClosed(k.up) {
		close(k.up)
	}
	return nil
}

// joinWorker waits for the cluster's API, as kubeadm does, and joins.
func (c *clusters) joinWorker(ctx context.Context, n *node) error {
	c.mu.Lock()
	k := c.find(n.boot)
	k.joining++
	c.mu.Unlock()
	err := k.awaitAPI(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	k.joining--
	if err != nil {
		c.dropEmpty(k)
		return err
	}
	c.enlist(k, n)
	return c.nodeObjects(ctx, k, n)
}

func (k *cluster) awaitAPI(ctx context.Context) error {
	timeout := time.NewTimer(joinTimeout)
	defer timeout.Stop()
	select {
	case <-k.up:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return fmt.Errorf("joining cluster %s: timed out after %s waiting for an API server", k.id, joinTimeout)
	}
}

// enlist adds the machine to the cluster, unless it is a rebooted member.
func (c *clusters) enlist(k *cluster, n *node) {
	if _, already := c.nodes[n.machine.ID]; !already {
		k.nodes++
	}
	n.cluster = k
	if n.boot.version == "" {
		n.boot.version = k.version
	}
	c.nodes[n.machine.ID] = n
}

// readdress serves the API of a machine on its current addresses. A machine that is not a node yet
// uses them when it becomes one.
func (c *clusters) readdress(id string) error {
	if err := c.externals.readdress(id); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n, found := c.nodes[id]
	if !found {
		return nil
	}
	return c.serveOn(n)
}

// powerOff stops a node's servers and marks its objects as not ready.
func (c *clusters) powerOff(id string) {
	c.externals.powerOff(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	n, found := c.nodes[id]
	if !found {
		return
	}
	n.on = false
	if err := errors.Join(c.serveOn(n), c.markDown(n)); err != nil {
		c.log.Warn("powering off a simulated node failed", "machine", id, "error", err)
	}
}

// remove removes a machine from its cluster; the last machine removes the cluster.
func (c *clusters) remove(id string) error {
	if err := c.externals.remove(id); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n, found := c.nodes[id]
	if !found {
		return nil
	}
	delete(c.nodes, id)
	n.on = false
	err := c.serveOn(n)
	k := n.cluster
	k.nodes--
	if c.dropEmpty(k) {
		return err
	}
	delete(k.configs, etcdPrefix+n.boot.nodeName)
	for _, a := range n.machine.Addresses {
		delete(k.configs, a.IP.String())
	}
	return errors.Join(err, c.dropObjects(n))
}

func (c *clusters) close() error {
	c.mu.Lock()
	c.shutdown = true
	c.mu.Unlock()
	c.externals.stop()
	err := c.server.Close()
	c.cancel()
	c.serving.Wait()
	return err
}

func isClosed(ch chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
