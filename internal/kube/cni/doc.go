// Package cni is Drover's small network for Pods: on nodes that reach each other directly, a link
// from each Pod to its node, one route per peer, and one rule that hides Pods behind their node
// when they talk to the world. Pod ranges come from the nodes themselves, as
// kube-controller-manager gives them out.
//
// It owns the file that tells the container runtime about the network, the routes it has marked as
// its own, and one nftables table. It touches nothing else, keeps no state, and leaves everything
// in place when it stops, so that Pods go on talking while it is replaced; [Clean] takes everything
// away. Start with [Agent].
package cni
