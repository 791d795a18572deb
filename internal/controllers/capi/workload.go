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

// userAgent is how the manager names itself to workload clusters.
const userAgent = "drover-manager"

// staticPods selects the Pods whose health makes up that of a kubeadm control plane.
const staticPods = "tier=control-plane,component in (etcd,kube-apiserver,kube-controller-manager,kube-scheduler)"

// workloadOptions is the union of upstream's three sets of connections. Nodes are whole, as the Machine controller copies
// from their status. Pods are the one kind on which upstream's managers disagree: the control plane provider reads a
// few static Pods from a narrow cache, draining lists all Pods of a node. Both get their way, see livePods.
func (w *wiring) workloadOptions() clustercache.Options {
	return clustercache.Options{
		SecretClient:     w.secrets,
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

// retryEvery is how long after a failed attempt a workload cluster is tried again. Upstream waits half a minute, and
// a new cluster always fails once: its control plane machine boots at that time, and workers wait for the outcome.
const retryEvery = 2 * time.Second

// retryInterval is a setting that upstream has no option for.
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

// neverCached lists what is read rarely, changes often or is large.
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

// livePods is a ClusterCache whose clients ask the workload cluster itself for Pods. The cache below holds static Pods of the
// control plane only, so answering from it would tell a drain that a node is empty.
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
