// Package workload connects controllers and commands to workload clusters. Each cluster has one
// connection, which everything that is installed there shares: clients, discovery of kinds, and
// watches.
//
// It owns connections, their limits and their health, and never decides what is installed on a
// cluster. A circuit breaker keeps an unreachable cluster from slowing down the others. Start with
// Clusters.Get and Cluster.
package workload
