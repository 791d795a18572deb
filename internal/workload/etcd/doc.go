// Package etcd connects to the etcd of a workload cluster: its members on the control plane
// machines, reached through the API server, or external ones, reached at their addresses.
//
// It reads and maintains data and never changes the membership. Callers need to read the Secrets of
// the cluster. Start with Open.
package etcd
