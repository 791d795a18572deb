package cluster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/metal/client"
)

// Tags of an elastic address. The first is what addresses have always had; agents inside clusters look for it. It does not tell
// clusters of the same name in two namespaces apart, which the second does.
const (
	clusterTag   = "cluster-api-provider-packet:cluster-id:"
	namespaceTag = "capp:namespace:"
)

// identity is how a cluster is called in tags, and what it has recorded of its address.
type identity struct {
	cluster, namespace string
	host               string // of the endpoint, if it has one
	reservation        string // the id that was recorded
}

func (i identity) tags() []string {
	return []string{client.Tag(clusterTag, i.cluster), client.Tag(namespaceTag, i.namespace)}
}

// verdict is which address is the cluster's.
type verdict struct {
	address *client.IPReservation
	// owned says that it was reserved for this cluster.
	owned bool
	// surplus are addresses that were reserved for this cluster as well, and that nobody uses.
	surplus []client.IPReservation
	// problem says why none of the addresses that could be the cluster's is taken.
	problem string
}

// choose decides which address is the cluster's, if any. taken says whether a cluster of the same name in another namespace has an
// address, or may yet ask for it.
func (i identity) choose(all []client.IPReservation, taken func(address string) bool) verdict {
	all = slices.SortedFunc(slices.Values(all), func(a, b client.IPReservation) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	if v := i.tagged(all); v.address != nil {
		return v
	}
	for n := range all {
		if all[n].ID == i.reservation || (i.host != "" && all[n].Address == i.host) {
			return i.named(&all[n])
		}
	}
	if i.host != "" {
		return verdict{}
	}
	return i.former(all, taken)
}

// tagged picks among the addresses that carry both tags: the one in use, else the oldest.
func (i identity) tagged(all []client.IPReservation) verdict {
	own := slices.DeleteFunc(slices.Clone(all), func(ip client.IPReservation) bool { return !hasAll(ip.Tags, i.tags()) })
	if len(own) == 0 {
		return verdict{}
	}
	chosen := max(0, slices.IndexFunc(own, func(ip client.IPReservation) bool { return ip.ID == i.reservation || ip.Address == i.host }))
	v := verdict{address: &own[chosen], owned: true}
	for n := range own {
		if n != chosen && len(own[n].Assignments) == 0 {
			v.surplus = append(v.surplus, own[n])
		}
	}
	return v
}

// named accepts an address that the cluster already has as its endpoint, unless its tags say that it is another cluster's.
func (i identity) named(ip *client.IPReservation) verdict {
	if owner := foreign(ip.Tags, client.Tag(namespaceTag, i.namespace), namespaceTag); owner != "" {
		return verdict{problem: "address " + ip.Address + " belongs to a cluster in namespace " + owner}
	}
	if owner := foreign(ip.Tags, client.Tag(clusterTag, i.cluster), clusterTag); owner != "" {
		return verdict{problem: "address " + ip.Address + " belongs to cluster " + owner}
	}
	return verdict{address: ip, owned: slices.Contains(ip.Tags, client.Tag(clusterTag, i.cluster))}
}

// former accepts an address that was reserved before tags told namespaces apart, if it can be no other cluster's.
func (i identity) former(all []client.IPReservation, taken func(string) bool) verdict {
	var candidates []client.IPReservation
	for _, ip := range all {
		anyNamespace := slices.ContainsFunc(ip.Tags, func(tag string) bool { return strings.HasPrefix(tag, namespaceTag) })
		if slices.Contains(ip.Tags, client.Tag(clusterTag, i.cluster)) && !anyNamespace && !taken(ip.Address) {
			candidates = append(candidates, ip)
		}
	}
	switch len(candidates) {
	case 0:
		return verdict{}
	case 1:
		return verdict{address: &candidates[0], owned: true}
	default:
		return verdict{problem: "several addresses have the tag " + client.Tag(clusterTag, i.cluster) + " and could be the cluster's: set spec.controlPlaneEndpoint to the right one"}
	}
}

// foreign returns the value of a tag with the prefix, if there is one and it is not own.
func foreign(tags []string, own, prefix string) string {
	if slices.Contains(tags, own) {
		return ""
	}
	for _, tag := range tags {
		if value, ok := strings.CutPrefix(tag, prefix); ok {
			return value
		}
	}
	return ""
}

func hasAll(tags, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(tag string) bool { return !slices.Contains(tags, tag) })
}
