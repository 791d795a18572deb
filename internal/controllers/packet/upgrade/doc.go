// Package upgrade upgrades machines in place: it serves the hooks by which Cluster API asks whether
// a machine can be changed without replacing it (refuse.go), and changes it (machine.go).
//
//	claim ──▶ cordon, evict Pods ──▶ metal upgrades the device ──▶ node ready ──▶ uncordon, release
//
// One machine of a cluster is changed at a time. The manager never runs anything on a machine: it
// tells metal a version. All state is in the Machine, its node and its device, so that another
// manager continues anywhere. Start with Upgrader.Serve; decide.go chooses each next step.
package upgrade
