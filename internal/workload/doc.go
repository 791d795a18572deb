// Package workload is how Drover's own controllers reach workload clusters: one connection for each cluster, which everything that is
// installed there shares, with what is known of the cluster's kinds, and with watches that tell what changed.
//
// It owns connections, their limits and their health. It never decides what is put onto a cluster. A cluster that does not answer is left
// alone for a while (see breaker), so that it costs the others nothing. Start with Clusters.Get, then Cluster.
package workload
