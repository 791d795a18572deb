package metal

import (
	"errors"
	"net/netip"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/store"
	"github.com/drover-dev/drover/internal/metal/tags"
)

// joinEndpoint records that a new device may move the address of its cluster's endpoint, if its
// tags and those of the address agree. Until the device is deleted, the address can't be released,
// so nobody else gets it.
func (c *call) joinEndpoint(tx *store.Tx, d *store.Device, _ *api.DeviceCreate) error {
	cluster, ok := tags.MovedBy(d.Tags)
	if !ok || !c.networks.Endpoints {
		return nil
	}
	ids := c.store.Blocks().All(store.Query{Project: d.ProjectID, Terms: []string{"tag:" + cluster.ClusterTag()}})
	for _, id := range ids {
		b, err := tx.Blocks().Get(id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if !isEndpoint(b, cluster, c.networks.Public) {
			continue
		}
		d.Endpoint, d.EndpointID = b.Prefix.Addr(), b.ID
		b.Movers = append(b.Movers, d.ID)
		return tx.Blocks().Put(b)
	}
	return nil
}

// isEndpoint reports whether a block is the address of a cluster's endpoint on a network.
func isEndpoint(b *store.Block, cluster tags.Endpoint, network netip.Prefix) bool {
	return !b.Management && b.State == blockCreated && b.Prefix.IsSingleIP() && b.Prefix.Addr().Is4() &&
		network.Contains(b.Prefix.Addr()) && cluster.Owns(b.Tags)
}
