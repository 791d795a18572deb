// Package local runs machines in Linux namespaces on this host. Each machine has its own processes,
// users, mounts, host name, network link and cgroups, a root file system based on the image of
// package node, and our own first process, package guest, which boots it like a real machine.
//
//	metal ──► Driver ──► "drover machine-run" ──► "drover machine-init" (PID 1 of the machine)
//	             ▲          mounts, joins cgroups,     network, services, userdata
//	             │          confines itself, clones,
//	             │          attaches the link, exits
//	             └── file of events, pidfd ◄──────────────┘
//
// Machines are not child processes of the driver: they keep running when metal exits, and the
// driver finds them again by the files in their directories. Nearly all resources of a machine are
// released with its first process; the others carry the name of the home, so that leftovers can be
// found by name. The package never decides which machines exist. Start at [New].
package local
