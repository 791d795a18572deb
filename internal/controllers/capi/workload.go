package capi

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/controllers/remote"
)

// userAgent identifies the manager to workload clusters.
const userAgent = "drover-manager"

// staticPods selects the Pods that determine the health of a kubeadm control plane.
const staticPods = "tier=control-plane,component in (etcd,kube-apiserver,kube-controller-manager,kube-scheduler)"

// workloadOptions returns the union of upstream's three sets of connections. Nodes are complete, as
// the Machine controller copies from their status. Upstream's managers disagree only on Pods: the
// control plane provider reads a few static Pods from a narrow cache, draining lists all Pods of a
// node. livePods serves both.
func (w *wiring) workloadOptions() clustercache.Options {
	return clustercache.Options{
		SecretClient:     kubeconfigs{Reader: w.secrets, wiring: w},
		WatchFilterValue: w.WatchFilter,
		Cache: clustercache.CacheOptions{
			DefaultTransform: ctrlcache.TransformStripManagedFields(),
			ByObject:         map[client.Object]ctrlcache.ByObject{&corev1.Pod{}: staticPodsOnly()},
			Indexes:          []clustercache.CacheOptionsIndex{clustercache.NodeProviderIDIndex},
		},
		Client: clustercache.ClientOptions{
			QPS:       workloadQPS,
			Burst:     workloadBurst,
			UserAgent: remote.DefaultClusterAPIUserAgent(userAgent),
			Cache:     clustercache.ClientCacheOptions{DisableFor: neverCached()},
		},
	}
}

// retryEvery is the retry interval for unreachable workload clusters. Upstream waits half a minute,
// and a new cluster always fails once: its control plane machine is booting at that time, and
// workers wait for the result.
const retryEvery = 2 * time.Second

// retryInterval sets a field that upstream has no option for.
type retryInterval interface {
	SetConnectionCreationRetryInterval(interval time.Duration)
}

func retrySoon(c clustercache.ClusterCache) {
	if c, ok := c.(retryInterval); ok {
		c.SetConnectionCreationRetryInterval(retryEvery)
	}
}

func staticPodsOnly() ctrlcache.ByObject {
	selector, err := labels.Parse(staticPods)
	if err != nil {
		panic(err) // the selector is a constant
	}
	return ctrlcache.ByObject{Namespaces: map[string]ctrlcache.Config{
		metav1.NamespaceSystem: {LabelSelector: selector, Transform: trimPod},
	}}
}

// neverCached lists objects that are read rarely, change often or are large.
func neverCached() []client.Object {
	return []client.Object{
		&corev1.ConfigMap{},
		&corev1.Secret{},
		&corev1.PersistentVolume{},
		&appsv1.DaemonSet{},
		&appsv1.Deployment{},
		&storagev1.VolumeAttachment{},
	}
}

// trimPod drops the spec of a static Pod: its health is in the status.
func trimPod(in any) (any, error) {
	if pod, ok := in.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		pod.Spec = corev1.PodSpec{}
	}
	return in, nil
}

// livePods is a ClusterCache whose clients read Pods from the workload cluster itself. The cache
// below holds only static Pods of the control plane, so a drain that reads it would find nodes
// empty.
type livePods struct{ clustercache.ClusterCache }

// GetClient returns a client that is cached for everything but Pods.
func (l livePods) GetClient(ctx context.Context, cluster client.ObjectKey) (client.Client, error) {
	cached, err := l.ClusterCache.GetClient(ctx, cluster)
	if err != nil {
		return nil, err
	}
	live, err := l.GetUncachedClient(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return livePodClient{Client: cached, live: live}, nil
}

// GetReader returns a reader that is cached for everything but Pods.
func (l livePods) GetReader(ctx context.Context, cluster client.ObjectKey) (client.Reader, error) {
	return l.GetClient(ctx, cluster)
}

type livePodClient struct {
	client.Client
	live client.Reader
}

func (c livePodClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*corev1.Pod); ok {
		return c.live.Get(ctx, key, obj, opts...)
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c livePodClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*corev1.PodList); ok {
		return c.live.List(ctx, list, opts...)
	}
	return c.Client.List(ctx, list, opts...)
}
