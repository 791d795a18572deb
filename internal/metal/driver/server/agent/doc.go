// Package agent runs on a server that a user owns. It is the drover program itself, started from
// /opt/drover: it installs what a node needs, executes the userdata with the engine of local
// machines, and later undoes all of it. Before it changes a file, it records how to restore it.
//
//	driver ──ssh──▶ agent put ──▶ spec, unit drover-provision ──▶ agent provision ──▶ kubelet
//	       ──ssh──▶ agent events ◀──────── file of events ◀──────────┘
//	       ──ssh──▶ agent put-upgrade ──▶ unit drover-upgrade ──▶ agent upgrade ──▶ kubeadm
//	       ──ssh──▶ agent clean ──▶ stop, restore, verify
//
// The units that it leaves behind need neither the driver nor a running agent. It never decides
// what a server becomes. Start at Main.
package agent
