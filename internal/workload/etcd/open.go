package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// Timeouts of connecting and of one small request.
	dialTimeout = 5 * time.Second
	callTimeout = 10 * time.Second
	// maxMessage is the largest message that is accepted from a member, which may be hostile. Etcd
	// sends snapshots in pieces of 32 KiB.
	maxMessage = 1 << 20
)

// Cluster names a cluster and how to reach its API server.
type Cluster struct {
	client.ObjectKey

	// Objects reads the cluster's objects on the management plane, Secrets included.
	Objects client.Reader
	// API returns the configuration for the cluster's API server. External etcd doesn't need it.
	API func(context.Context) (*rest.Config, error)
}

// Etcd is a connection to the members of one etcd.
type Etcd struct {
	// External reports whether the members run on machines of their own.
	External bool
	// endpoints are Pods with the name of their member, or URLs of members.
	endpoints []endpoint
	trust     *tls.Config
	dial      func(ctx context.Context, pod string) (net.Conn, error)
}

// endpoint is where clients reach a member.
type endpoint struct {
	// url also names the server that the certificate must be for.
	url string
	// pod, if set, is the Pod to connect to instead, and member the member in it.
	pod, member string
}

// podURL is the URL of members in Pods. The certificates of all of them contain that name.
const podURL = "https://localhost:" + clientPort

// Open finds the members of a cluster's etcd. It doesn't connect to them.
func Open(ctx context.Context, c Cluster) (*Etcd, error) {
	plane, err := controlPlane(ctx, c)
	if err != nil {
		return nil, err
	}
	e := &Etcd{}
	if urls := plane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints; len(urls) > 0 {
		e.External = true
		for _, url := range urls {
			e.endpoints = append(e.endpoints, endpoint{url: url})
		}
	}
	if e.trust, err = credentials(ctx, c, e.External); err != nil || e.External {
		return e, err
	}
	err = e.findPods(ctx, c)
	return e, err
}

// controlPlane returns the KubeadmControlPlane of a cluster.
func controlPlane(ctx context.Context, c Cluster) (*controlplanev1.KubeadmControlPlane, error) {
	cluster := &clusterv1.Cluster{}
	if err := c.Objects.Get(ctx, c.ObjectKey, cluster); err != nil {
		return nil, fmt.Errorf("reading cluster %q: %w", c.ObjectKey, err)
	}
	ref := cluster.Spec.ControlPlaneRef
	if ref.Kind != "KubeadmControlPlane" {
		return nil, fmt.Errorf("cluster %q has no etcd that Drover knows: its control plane is a %q, not a KubeadmControlPlane", c.ObjectKey, ref.Kind)
	}
	plane := &controlplanev1.KubeadmControlPlane{}
	if err := c.Objects.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: ref.Name}, plane); err != nil {
		return nil, fmt.Errorf("reading the control plane of cluster %q: %w", c.ObjectKey, err)
	}
	return plane, nil
}

// findPods finds the static Pods of members on control plane machines.
func (e *Etcd) findPods(ctx context.Context, c Cluster) error {
	config, err := c.API(ctx)
	if err != nil {
		return err
	}
	e.dial = func(ctx context.Context, pod string) (net.Conn, error) { return forward(ctx, config, pod) }
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to cluster %q: %w", c.ObjectKey, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pods, err := api.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "component=etcd,tier=control-plane"})
	if err != nil {
		return fmt.Errorf("listing the etcd Pods of cluster %q: %w", c.ObjectKey, err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase == corev1.PodRunning {
			e.endpoints = append(e.endpoints, endpoint{podURL, p.Name, p.Spec.NodeName})
		}
	}
	if len(e.endpoints) == 0 {
		return fmt.Errorf("cluster %q has no running etcd Pod", c.ObjectKey)
	}
	return nil
}

// connect returns a client of one member.
func (e *Etcd) connect(at endpoint) (*clientv3.Client, error) {
	config := clientv3.Config{
		Endpoints: []string{at.url}, TLS: e.trust, DialTimeout: dialTimeout, Logger: zap.NewNop(),
		DialKeepAliveTime: dialTimeout, DialKeepAliveTimeout: callTimeout, MaxCallRecvMsgSize: maxMessage,
	}
	if at.pod != "" {
		config.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return e.dial(ctx, at.pod)
		})}
	}
	return clientv3.New(config)
}

// eachEndpoint calls use for endpoints, until it returns no error.
func (e *Etcd) eachEndpoint(use func(*clientv3.Client) error) error {
	var failed error
	for _, at := range e.endpoints {
		c, err := e.connect(at)
		if err != nil {
			return err
		}
		err = errors.Join(use(c), c.Close())
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", cmp.Or(at.pod, at.url), err))
	}
	return failed
}
