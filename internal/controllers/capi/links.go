package capi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/drover-dev/drover/internal/workload"
)

// Upstream creates the clients for workload clusters from kubeconfigs and has no option for their
// transport, so that a cluster could answer with gigabytes. links gives upstream kubeconfigs with
// addresses of a scheme of its own:
//
//	upstream's client ──workload://team-a/one/api/v1/nodes──▶ http.DefaultTransport
//	                                                                 │ RegisterProtocol
//	            https://192.0.2.1:6443/api/v1/nodes ◀── limits ◀── links
//
// Credentials of clusters stay here; upstream has nothing but the address.
type links struct {
	scheme string

	mu   sync.RWMutex
	open map[client.ObjectKey]*link
}

// link is the way to one cluster.
type link struct {
	config    *rest.Config
	base      *url.URL
	transport http.RoundTripper
}

// requestLimit is longer than any request but a watch takes.
const requestLimit = 2 * time.Minute

// linkCount numbers the schemes, because a scheme can be registered only once per process.
var linkCount atomic.Int64

func newLinks() *links {
	l := &links{scheme: "workload", open: map[client.ObjectKey]*link{}}
	if n := linkCount.Add(1); n > 1 {
		l.scheme += strconv.FormatInt(n, 10)
	}
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t.RegisterProtocol(l.scheme, l)
	}
	registerTunnels()
	tunneled.Store(l.scheme, l)
	return l
}

// linksOf returns links that are forgotten with their Cluster.
func linksOf(ctx context.Context, clusters ctrlcache.Cache) (*links, error) {
	l := newLinks()
	informer, err := clusters.GetInformer(ctx, &clusterv1.Cluster{}, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		if key, err := toolscache.DeletionHandlingObjectToName(obj); err == nil {
			l.forget(client.ObjectKey{Namespace: key.Namespace, Name: key.Name})
		}
	}})
	return l, err
}

func (l *links) forget(key client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, key)
}

// connect replaces the way to a cluster and returns the kubeconfig for upstream.
func (l *links) connect(ctx context.Context, key client.ObjectKey, config *rest.Config) (*clientcmdapi.Config, error) {
	made, err := newLink(config)
	if err == nil {
		made, err = made.shortcut(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to cluster %q: %w", key, err)
	}
	l.mu.Lock()
	l.open[key] = made
	l.mu.Unlock()
	out := clientcmdapi.NewConfig()
	out.Clusters[key.Name] = &clientcmdapi.Cluster{Server: fmt.Sprintf("%s://%s/%s", l.scheme, key.Namespace, key.Name)}
	out.AuthInfos[key.Name] = clientcmdapi.NewAuthInfo()
	out.Contexts[key.Name] = &clientcmdapi.Context{Cluster: key.Name, AuthInfo: key.Name}
	out.CurrentContext = key.Name
	return out, nil
}

func newLink(config *rest.Config) (*link, error) {
	config = rest.CopyConfig(config)
	config.Wrap(workload.Limit(requestLimit))
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	base.Path = "/" + strings.TrimPrefix(base.Path, "/") // Otherwise JoinPath returns a relative path.
	return &link{config: config, base: base, transport: transport}, nil
}

func (l *links) get(key client.ObjectKey) *link {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.open[key]
}

// RoundTrip sends the request of an upstream client to the cluster of its address.
func (l *links) RoundTrip(r *http.Request) (*http.Response, error) {
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	to := l.get(client.ObjectKey{Namespace: r.URL.Host, Name: name})
	if to == nil {
		return nil, fmt.Errorf("no connection to cluster %q", r.URL.Host+"/"+name)
	}
	sent := r.Clone(r.Context())
	sent.URL = to.base.JoinPath(path)
	sent.URL.RawQuery, sent.Host = r.URL.RawQuery, ""
	response, err := to.transport.RoundTrip(sent)
	if response != nil {
		response.Request = r
	}
	return response, err
}

// shortcut returns a link that doesn't leave the cluster, if the manager runs there: the address of
// a control plane may not be reachable from its own machines.
func (k *link) shortcut(ctx context.Context) (*link, error) {
	namespace, name, uid := os.Getenv("POD_NAMESPACE"), os.Getenv("POD_NAME"), os.Getenv("DROVER_POD_UID")
	if namespace == "" || name == "" || uid == "" {
		return k, nil
	}
	c, err := kubernetes.NewForConfig(k.config)
	if err != nil {
		return nil, err
	}
	pod, err := c.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && string(pod.UID) != uid {
		return k, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for Pod %q there: %w", namespace+"/"+name, err)
	}
	inside, err := rest.InClusterConfig()
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(k.config)
	config.WrapTransport, config.Proxy, config.Dial = nil, nil, nil
	config.Host, config.CAFile, config.CAData, config.ServerName, config.Insecure = inside.Host, inside.CAFile, nil, "", false
	return newLink(config)
}

// connections is upstream's ClusterCache with configurations that lead to the clusters themselves.
type connections struct {
	clustercache.ClusterCache
	links *links
}

// GetRESTConfig returns a configuration with the limits of a workload cluster.
func (c connections) GetRESTConfig(ctx context.Context, cluster client.ObjectKey) (*rest.Config, error) {
	connected, err := c.ClusterCache.GetRESTConfig(ctx, cluster)
	if err != nil {
		return nil, err
	}
	to := c.links.get(cluster)
	if to == nil {
		return nil, errors.Join(clustercache.ErrClusterNotConnected, fmt.Errorf("cluster %q has no kubeconfig", cluster))
	}
	config := rest.CopyConfig(to.config)
	config.UserAgent, config.Timeout, config.QPS, config.Burst = connected.UserAgent, connected.Timeout, connected.QPS, connected.Burst
	return config, nil
}
