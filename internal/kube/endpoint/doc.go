// Package endpoint moves the address of a cluster's control plane among the machines of that
// control plane, without anything outside of the cluster.
//
// An agent on each of these machines talks to the API server of its own machine only. The agent
// that holds the Lease has the address on its link and renews both together; the others wait until
// the Lease expires and nobody answers for the address any more.
//
//	        Lease free or expired,
//	        nobody answers ARP                 written
//	waiting ──────────────────────▶ taking ───────────────▶ holding ─┐ renewed every
//	   ▲                                                       │  ▲  │ half second
//	   │  not renewed for 2.5 s, another machine answers,      │  └──┘
//	   └── another holder, or the node is drained ◀────────────┘
//
// The kernel removes the address if the agent doesn't refresh it, so an agent that hangs or was
// killed loses it as well. State decides and does nothing else; Agent does what it decides. The
// package knows neither the Packet API nor the manager.
package endpoint
