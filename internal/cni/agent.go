package cni

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/knftables"
)

// retryAfter is how long a failed attempt waits for the next; any change of a
// node comes first.
const retryAfter = 5 * time.Second

// Agent keeps the network of one node as the nodes of its cluster want it.
type Agent struct {
	// Node is the name of the node it runs on.
	Node string
	// ConfDir is where the container runtime looks for networks.
	ConfDir string
	Client  kubernetes.Interface
	Log     *slog.Logger

	nodes   listers.NodeLister
	changes chan struct{}
	tables  map[knftables.Family]knftables.Interface
}

// Run works until ctx ends.
func (a *Agent) Run(ctx context.Context) error {
	if err := forwardPackets(); err != nil {
		return err
	}
	if err := a.openTables(); err != nil {
		return err
	}
	if err := a.watch(ctx); err != nil {
		return err
	}
	for {
		var wait <-chan time.Time
		if err := a.sync(ctx); err != nil {
			a.Log.Error("The network of this node is not complete", "error", err)
			wait = time.After(retryAfter)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.changes:
		case <-wait:
		}
	}
}

func (a *Agent) openTables() error {
	a.tables = map[knftables.Family]knftables.Interface{}
	for _, family := range []knftables.Family{knftables.IPv4Family, knftables.IPv6Family} {
		nft, err := knftables.New(family, tableName)
		if err != nil {
			return fmt.Errorf("using nftables: %w", err)
		}
		a.tables[family] = nft
	}
	return nil
}

// watch fills the lister and turns every change that matters into a token in
// a channel of one: any number of changes need one look.
func (a *Agent) watch(ctx context.Context) error {
	a.changes = make(chan struct{}, 1)
	factory := informers.NewSharedInformerFactoryWithOptions(a.Client, 0, informers.WithTransform(trim))
	nodes := factory.Core().V1().Nodes()
	a.nodes = nodes.Lister()
	_, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { a.notify() },
		UpdateFunc: func(was, is any) { a.notifyIfMoved(was, is) },
		DeleteFunc: func(any) { a.notify() },
	})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("listing %v: %w", kind, context.Cause(ctx))
		}
	}
	return nil
}

// trim keeps of a node what Plan reads; the rest changes every few seconds.
func trim(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	kept := &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: node.Spec.PodCIDR, PodCIDRs: node.Spec.PodCIDRs}}
	kept.Name, kept.ResourceVersion, kept.UID = node.Name, node.ResourceVersion, node.UID
	kept.Status.Addresses = node.Status.Addresses
	return kept, nil
}

func (a *Agent) notify() {
	select {
	case a.changes <- struct{}{}:
	default:
	}
}

// notifyIfMoved ignores the heartbeats of nodes.
func (a *Agent) notifyIfMoved(was, is any) {
	before, _ := was.(*corev1.Node)
	after, _ := is.(*corev1.Node)
	if before == nil || after == nil || fingerprint(before) != fingerprint(after) {
		a.notify()
	}
}

func fingerprint(n *corev1.Node) string {
	return fmt.Sprint(n.Spec.PodCIDR, n.Spec.PodCIDRs, n.Status.Addresses)
}

// sync compares and corrects. It does as much as it can and reports the rest.
func (a *Agent) sync(ctx context.Context) error {
	nodes, err := a.nodes.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	desired, problems := Plan(a.Node, nodes)
	if len(desired.Ranges) == 0 {
		return errors.Join(append(problems, fmt.Errorf("node %q has no Pod range yet: does kube-controller-manager allocate them?", a.Node))...)
	}
	errs := problems
	routes, err := syncRoutes(desired.Routes)
	errs = append(errs, err)
	for family, nft := range a.tables {
		errs = append(errs, masquerade(ctx, nft, family, desired))
	}
	// The file comes last: the node is Ready once it is there.
	written, err := writeConflist(a.ConfDir, desired.Ranges)
	errs = append(errs, err)
	if routes > 0 || written {
		a.Log.Info("The network has changed", "ranges", texts(desired.Ranges), "peers", len(desired.Routes), "routesChanged", routes)
	}
	return errors.Join(errs...)
}

func texts(prefixes []netip.Prefix) []string {
	var out []string
	for _, p := range prefixes {
		out = append(out, p.String())
	}
	return out
}

// forwardPackets lets the node pass on what is for Pods. IPv6 may be absent.
func forwardPackets() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600); err != nil {
		return fmt.Errorf("switching on forwarding: %w", err)
	}
	err := os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0o600)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("switching on forwarding for IPv6: %w", err)
	}
	return nil
}
