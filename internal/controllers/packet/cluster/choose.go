package cluster

import (
	"cmp"
	"slices"

	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/tags"
)

// identity is how a cluster is named in tags, and what it has recorded of its address.
type identity struct {
	tags.Endpoint
	host        string // of the endpoint, if it has one
	reservation string // the recorded id
}

// verdict is the decision which address is the cluster's.
type verdict struct {
	address *client.IPReservation
	// owned means that it was reserved for this cluster.
	owned bool
	// surplus are unused addresses that were reserved for this cluster as well.
	surplus []client.IPReservation
	// problem is why none of the candidates can be used.
	problem string
}

// choose decides which address is the cluster's, if any. taken reports whether a cluster of the
// same name in another namespace has an address, or may still adopt it.
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

// tagged chooses among the addresses with both tags: the one in use, otherwise the oldest.
func (i identity) tagged(all []client.IPReservation) verdict {
	own := slices.DeleteFunc(slices.Clone(all), func(ip client.IPReservation) bool { return !i.Owns(ip.Tags) })
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

// named accepts an address that is already the cluster's endpoint, unless its tags name another
// cluster.
func (i identity) named(ip *client.IPReservation) verdict {
	if i.OtherNamespace(ip.Tags) != "" || i.OtherCluster(ip.Tags) != "" {
		return verdict{problem: "Address " + ip.Address + " belongs to another cluster"} // whose name is not for this one's users
	}
	return verdict{address: ip, owned: i.Names(ip.Tags)}
}

// former adopts an address of the former provider, whose tags lack the namespace, if it can't
// belong to another cluster.
func (i identity) former(all []client.IPReservation, taken func(string) bool) verdict {
	var candidates []client.IPReservation
	for _, ip := range all {
		if i.Names(ip.Tags) && !tags.HasNamespace(ip.Tags) && !taken(ip.Address) {
			candidates = append(candidates, ip)
		}
	}
	switch len(candidates) {
	case 0:
		return verdict{}
	case 1:
		return verdict{address: &candidates[0], owned: true}
	default:
		return verdict{problem: "Several addresses have the tag " + i.ClusterTag() + ": set spec.controlPlaneEndpoint to the cluster's address"}
	}
}
