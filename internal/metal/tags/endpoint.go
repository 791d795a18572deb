package tags

import (
	"slices"
	"strings"
)

// The tags of an elastic address. Addresses have always had the first, which agents inside workload
// clusters search for. It does not tell clusters of the same name in two namespaces apart, so
// Drover adds the second.
const (
	endpointCluster   = former + clusterKey
	endpointNamespace = current + namespaceKey
	// endpointLease is on devices that move the address of the endpoint by themselves, with a Lease
	// in their cluster.
	endpointLease = "drover:endpoint:lease"
	controlPlane  = "master"
)

// Endpoint is a cluster as the tags of its elastic address identify it.
type Endpoint struct {
	Namespace, Cluster string
}

// Encode returns the tags of a new address.
func (e Endpoint) Encode() []string { return []string{e.ClusterTag(), e.namespaceTag()} }

// ClusterTag returns the tag that names the cluster.
func (e Endpoint) ClusterTag() string { return join(endpointCluster, e.Cluster) }

func (e Endpoint) namespaceTag() string { return join(endpointNamespace, e.Namespace) }

// Owns reports whether an address with the tags was reserved for the cluster.
func (e Endpoint) Owns(tags []string) bool { return containsAll(tags, e.Encode()) }

// Names reports whether the tags name the cluster, in whatever namespace.
func (e Endpoint) Names(tags []string) bool { return slices.Contains(tags, e.ClusterTag()) }

// OtherNamespace returns the namespace that the tags name instead of the cluster's, or "".
func (e Endpoint) OtherNamespace(tags []string) string {
	return other(tags, endpointNamespace, e.namespaceTag())
}

// OtherCluster returns the cluster that the tags name instead of this one, or "".
func (e Endpoint) OtherCluster(tags []string) string {
	return other(tags, endpointCluster, e.ClusterTag())
}

// HasNamespace reports whether the tags of an address name a namespace. Addresses that the former
// provider reserved don't.
func HasNamespace(tags []string) bool {
	_, found := find(tags, endpointNamespace)
	return found
}

// MovedBy returns the cluster whose endpoint a device with the tags may take without being assigned
// its address. The tags of a device include those that whoever created the cluster chose, so a
// device whose tags name two clusters, namespaces or roles may take none.
func MovedBy(tags []string) (Endpoint, bool) {
	cluster, oneCluster := only(tags, current+clusterKey, former+clusterKey)
	namespace, oneNamespace := only(tags, current+namespaceKey, former+namespaceKey)
	role, oneRole := only(tags, roleKey)
	if !oneCluster || !oneNamespace || !oneRole || role != controlPlane || !slices.Contains(tags, endpointLease) {
		return Endpoint{}, false
	}
	return Endpoint{Namespace: namespace, Cluster: cluster}, true
}

// only returns the value of the one tag with any of the keys. A tag of full length may have been
// shortened, so it has no value.
func only(tags []string, keys ...string) (value string, one bool) {
	found := 0
	for _, tag := range tags {
		for _, key := range keys {
			if v, ok := strings.CutPrefix(tag, key); ok {
				value, found = v, found+1
				one = v != "" && len(tag) < MaxLength
			}
		}
	}
	return value, one && found == 1
}

func other(tags []string, key, own string) string {
	if slices.Contains(tags, own) {
		return ""
	}
	value, _ := find(tags, key)
	return value
}
