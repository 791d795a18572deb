package tags

import "strconv"

// The tags of addresses of external etcd. They don't include that by which a cluster finds its
// endpoint.
const (
	etcdKey     = "drover:etcd:"
	etcdSlotKey = "drover:etcd-slot:"
	// spareSlot is the value for the address that no slot has.
	spareSlot = "spare"
)

// Etcd is the external etcd of a cluster as the tags of its addresses identify it.
type Etcd struct{ Namespace, Cluster, Name string }

// Encode returns the tags of the address of a slot; a negative slot is the spare address.
func (e Etcd) Encode(slot int) []string {
	value := spareSlot
	if slot >= 0 {
		value = strconv.Itoa(slot)
	}
	return append(e.names(), etcdSlotKey+value)
}

func (e Etcd) names() []string {
	return []string{join(current+clusterKey, e.Cluster), join(endpointNamespace, e.Namespace), join(etcdKey, e.Name)}
}

// Slot returns the slot of an address with the tags, -1 for the spare, and whether it is of this
// etcd.
func (e Etcd) Slot(tags []string) (int, bool) {
	value, found := find(tags, etcdSlotKey)
	if !found || !containsAll(tags, e.names()) {
		return 0, false
	}
	if value == spareSlot {
		return -1, true
	}
	slot, err := strconv.Atoi(value)
	return slot, err == nil && slot >= 0
}
