package cni

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Desired is the desired network of one node.
type Desired struct {
	// Ranges are the node's own Pod ranges. Empty means that none is allocated yet and there is
	// nothing to do.
	Ranges []netip.Prefix
	// Routes lead to the Pods of the other nodes.
	Routes []Route
	// Cluster are the Pod ranges of all nodes: traffic between them is not masqueraded.
	Cluster []netip.Prefix
}

// Route is a Pod range and the address of its node.
type Route struct {
	To  netip.Prefix
	Via netip.Addr
}

// Plan derives the network of the named node from the nodes of a cluster. Peers without an address
// or a range are skipped until they have both, and reported as problems.
func Plan(self string, nodes []*corev1.Node) (d Desired, problems []error) {
	for _, node := range nodes {
		ranges, err := podRanges(node)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		d.Cluster = append(d.Cluster, ranges...)
		if node.Name == self {
			d.Ranges = ranges
			continue
		}
		routes, err := routesTo(node, ranges)
		if err != nil {
			problems = append(problems, err)
		}
		d.Routes = append(d.Routes, routes...)
	}
	slices.SortFunc(d.Routes, func(a, b Route) int { return comparePrefixes(a.To, b.To) })
	slices.SortFunc(d.Cluster, comparePrefixes)
	return d, problems
}

func podRanges(node *corev1.Node) ([]netip.Prefix, error) {
	texts := node.Spec.PodCIDRs
	if len(texts) == 0 && node.Spec.PodCIDR != "" {
		texts = []string{node.Spec.PodCIDR}
	}
	var out []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("parsing Pod range %[2]q of node %[1]q: %[3]w", node.Name, text, err)
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

// routesTo matches each range with an address of its family.
func routesTo(node *corev1.Node, ranges []netip.Prefix) ([]Route, error) {
	var routes []Route
	for _, to := range ranges {
		via, ok := internalAddress(node, to.Addr().Is4())
		if !ok {
			return routes, fmt.Errorf("node %q has no internal address as the gateway to its Pods in %s", node.Name, to)
		}
		routes = append(routes, Route{To: to, Via: via})
	}
	return routes, nil
}

//nolint:revive // the family is a property of the address that is looked for
func internalAddress(node *corev1.Node, v4 bool) (netip.Addr, bool) {
	for _, a := range node.Status.Addresses {
		if a.Type != corev1.NodeInternalIP {
			continue
		}
		if ip, err := netip.ParseAddr(a.Address); err == nil && ip.Is4() == v4 {
			return ip, true
		}
	}
	return netip.Addr{}, false
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
