package endpoint

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
)

const (
	// LeaseName is the name of the Lease in the cluster whose endpoint it is.
	LeaseName = "drover-endpoint"
	// LeaseNamespace is the namespace of the Lease.
	LeaseNamespace = metav1.NamespaceSystem

	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
)

// api is the API server of this machine.
type api struct {
	kubeconfig string
	address    netip.Addr

	mu     sync.Mutex // serializes open
	read   time.Time  // when the kubeconfig was written that the clients are of
	leases coordination.LeasesGetter
	nodes  core.NodesGetter
	// last is the Lease as it was returned last.
	last *coordinationv1.Lease
}

// open reads the kubeconfig if it is new. kubeadm writes it before there is anything to connect to,
// and replaces it when it renews certificates.
func (a *api) open() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	info, err := os.Stat(a.kubeconfig)
	if err != nil {
		return err
	}
	if a.leases != nil && info.ModTime().Equal(a.read) {
		return nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", a.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading %q: %w", a.kubeconfig, err)
	}
	if err := toOwnServer(config, a.address); err != nil {
		return fmt.Errorf("reading %q: %w", a.kubeconfig, err)
	}
	leases, err := coordination.NewForConfig(config)
	if err != nil {
		return err
	}
	nodes, err := core.NewForConfig(config)
	if err != nil {
		return err
	}
	a.leases, a.nodes, a.read = leases, nodes, info.ModTime()
	return nil
}

// toOwnServer makes a configuration for the endpoint lead to the API server of this machine, whose
// certificate is valid for the endpoint.
func toOwnServer(config *rest.Config, address netip.Addr) error {
	server, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	if server.Hostname() != address.String() {
		return fmt.Errorf("the server is %q, not the endpoint %s", server.Hostname(), address)
	}
	config.Host = "https://" + net.JoinHostPort("127.0.0.1", server.Port())
	config.ServerName = server.Hostname()
	config.QPS = -1
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	return nil
}

// lease reads the Lease.
func (a *api) lease(ctx context.Context) (Lease, error) {
	if err := a.open(); err != nil {
		return Lease{}, err
	}
	l, err := a.leases.Leases(LeaseNamespace).Get(ctx, LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		a.last = nil
		return Lease{}, nil
	}
	return a.keep(l, err)
}

// write makes a machine the holder of the Lease, or nobody. It fails if the Lease has changed since
// it was returned last.
func (a *api) write(ctx context.Context, holder string) (Lease, error) {
	next := written(a.last, holder, time.Now())
	if a.last == nil {
		return a.keep(a.leases.Leases(LeaseNamespace).Create(ctx, next, metav1.CreateOptions{}))
	}
	return a.keep(a.leases.Leases(LeaseNamespace).Update(ctx, next, metav1.UpdateOptions{}))
}

func (a *api) keep(l *coordinationv1.Lease, err error) (Lease, error) {
	if err != nil {
		return Lease{}, err
	}
	a.last = l
	return Lease{
		Holder: ptr.Deref(l.Spec.HolderIdentity, ""), Version: l.ResourceVersion,
		Duration: time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second,
	}, nil
}

// written returns the Lease to write. Its times are for people.
func written(last *coordinationv1.Lease, holder string, now time.Time) *coordinationv1.Lease {
	next := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LeaseName, Namespace: LeaseNamespace}}
	if last != nil {
		next = last.DeepCopy()
	}
	spec := &next.Spec
	if holder != "" && ptr.Deref(spec.HolderIdentity, "") != holder {
		spec.AcquireTime = &metav1.MicroTime{Time: now}
		spec.LeaseTransitions = ptr.To(ptr.Deref(spec.LeaseTransitions, 0) + 1)
	}
	spec.HolderIdentity = &holder
	spec.LeaseDurationSeconds = ptr.To(int32(Duration / time.Second)) // rounded down; agents know better
	spec.RenewTime = &metav1.MicroTime{Time: now}
	return next
}

// peers reads the nodes of the control plane, from the cache of the API server.
func (a *api) peers(ctx context.Context, name string) (Peers, error) {
	if err := a.open(); err != nil {
		return Peers{}, err
	}
	list, err := a.nodes.Nodes().List(ctx, metav1.ListOptions{LabelSelector: controlPlaneLabel, ResourceVersion: "0"})
	if err != nil {
		return Peers{}, err
	}
	return peersAmong(list.Items, name), nil
}

func peersAmong(nodes []corev1.Node, name string) Peers {
	var p Peers
	for _, n := range nodes {
		switch {
		case n.Name == name:
			p.Draining = n.Spec.Unschedulable
		case !n.Spec.Unschedulable && ready(n):
			p.Others, p.Able = p.Others+1, p.Able+1
		default:
			p.Others++
		}
	}
	return p
}

func ready(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
