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
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/knftables"
)

const (
	// retryAfter is the delay after a failed attempt; any change of a node triggers an earlier one.
	retryAfter = 5 * time.Second
	// repairAfter is the interval of repairs: the kernel sends no notification for routes that
	// disappear with a link.
	repairAfter = time.Minute
)

// Agent configures the network of one node from the nodes of its cluster.
type Agent struct {
	// Node is the name of the agent's node.
	Node string
	// ConfDir is the container runtime's directory of network configurations.
	ConfDir string
	// Nodes lists and watches the nodes of the cluster.
	Nodes cache.ListerWatcher
	Log   *slog.Logger

	store   cache.Store
	changes chan struct{}
	tables  map[knftables.Family]knftables.Interface
}

// Run runs until ctx ends, and leaves the configuration in place.
func (a *Agent) Run(ctx context.Context) error {
	if err := forwardPackets(); err != nil {
		return err
	}
	a.tables = map[knftables.Family]knftables.Interface{}
	if err := a.watch(ctx); err != nil {
		return err
	}
	for {
		wait := repairAfter
		if err := a.sync(ctx); err != nil {
			a.Log.Error("Failed to configure the network of this node", "error", err)
			wait = retryAfter
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.changes:
		case <-time.After(wait):
		}
	}
}

// sync configures as much as possible and reports the rest.
func (a *Agent) sync(ctx context.Context) error {
	var nodes []*corev1.Node
	for _, obj := range a.store.List() {
		if node, ok := obj.(*corev1.Node); ok {
			nodes = append(nodes, node)
		}
	}
	desired, problems := Plan(a.Node, nodes)
	if len(desired.Ranges) == 0 {
		return errors.Join(append(problems, fmt.Errorf("node %q has no Pod range: check that kube-controller-manager allocates node CIDRs", a.Node))...)
	}
	errs := problems
	routes, err := syncRoutes(desired.Routes)
	errs = append(errs, err, a.masquerade(ctx, desired))
	// The file is written last: it makes the node Ready.
	written, err := writeConflist(a.ConfDir, desired.Ranges)
	errs = append(errs, err)
	if routes > 0 || written {
		a.Log.Info("Configured the network of this node", "ranges", texts(desired.Ranges), "peers", len(desired.Routes), "routesChanged", routes)
	}
	return errors.Join(errs...)
}

// masquerade sets the table of each address family of the local Pods.
func (a *Agent) masquerade(ctx context.Context, d Desired) error {
	var errs []error
	for _, family := range families() {
		if len(ofFamily(d.Ranges, family)) == 0 {
			continue
		}
		if a.tables[family] == nil {
			nft, err := knftables.New(family, tableName)
			if err != nil {
				errs = append(errs, fmt.Errorf("using nftables for family %s: %w", family, err))
				continue
			}
			a.tables[family] = nft
		}
		errs = append(errs, masquerade(ctx, a.tables[family], family, d))
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

// forwardPackets enables forwarding to Pods. IPv6 may be absent.
func forwardPackets() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600); err != nil {
		return fmt.Errorf("enabling IPv4 forwarding: %w", err)
	}
	err := os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0o600)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("enabling IPv6 forwarding: %w", err)
	}
	return nil
}
