// Package local makes machines out of Linux namespaces on this host. Each has
// its own processes, mounts, names, network link and cgroups, a root file
// system over the image of package node, and a first process of ours, package
// guest, which boots it as a real machine would.
//
//	metal ──► Driver ──► "drover machine-run" ──► "drover machine-init" (PID 1 of the machine)
//	             ▲          joins cgroups, clones,        mounts, network, services, userdata
//	             │          attaches the link, exits
//	             └── file of events, pidfd ◄──────────────┘
//
// Machines are children of nobody here: they go on when metal ends and are
// found again by the files in their directory. Nearly everything that a machine
// is made of ends with its first process, and what does not carries the name of
// the home, so that leftovers are found by name. The package never decides
// which machines there should be. Start at [New].
package local
