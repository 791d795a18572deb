// Package cni is Drover's minimal Pod network for nodes that reach each other directly: a link from
// each Pod to its node, one route per peer, and one rule that masquerades traffic from Pods to the
// outside. Pod ranges are those that kube-controller-manager allocates to nodes.
//
// It owns the network configuration file of the container runtime, the routes marked as its own,
// and one nftables table. It touches nothing else, keeps no state, and leaves everything in place
// when it stops, so that Pods keep communicating while it is replaced; [Clean] removes everything.
// Start with [Agent].
package cni
