package metal

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

// reservedAddress gives a new device an address of the first reservation with enough room, instead
// of one that the service chooses.
func (c *call) reservedAddress(tx *store.Tx, d *store.Device, want api.DeviceIPRequest, kind string) error {
	for _, id := range want.IPReservations {
		b, err := tx.Blocks().Get(strings.ToLower(id))
		if errors.Is(err, store.ErrNotFound) || err == nil && b.ProjectID != d.ProjectID {
			return request.Unprocessable(id + " is not a valid IP reservation")
		}
		if err != nil {
			return err
		}
		if problem := reservationProblem(b, d, kind); problem != "" {
			return request.Unprocessable(problem)
		}
		length := want.CIDR
		if length == 0 {
			length = b.Prefix.Addr().BitLen()
		}
		if parts := freeParts(b, length); len(parts) > 0 {
			return c.useReserved(tx, d, b, parts[0])
		}
	}
	return request.Unprocessable("No free block of the requested size is left in the IP reservations " + strings.Join(want.IPReservations, ", "))
}

// reservationProblem returns why a device can't use a reservation, or "".
func reservationProblem(b *store.Block, d *store.Device, kind string) string {
	switch {
	case b.Management || b.State != blockCreated:
		return b.ID + " is not a valid IP reservation"
	case b.Type != kind:
		return fmt.Sprintf("The IP reservation %s is of type %s, not %s", b.ID, b.Type, kind)
	case b.Metro != "" && b.Metro != d.Metro:
		return fmt.Sprintf("The IP reservation %s is in metro %s, the device is in %s", b.ID, b.Metro, d.Metro)
	default:
		return ""
	}
}

// useReserved makes a part of a reservation the management address of a device. Like those that the
// service chooses, it can't move to another device.
func (c *call) useReserved(tx *store.Tx, d *store.Device, b *store.Block, part netip.Prefix) error {
	a := store.Address{
		ID: store.NewID(), BlockID: b.ID, IP: part.Addr(), Prefix: b.Network, Gateway: b.Gateway,
		Public: !strings.HasPrefix(b.Type, "private_"), Management: true, Created: d.Created,
	}
	if !c.networks.Flat && !part.IsSingleIP() {
		a.IP, a.Prefix, a.Gateway = lastOf(part), part, part.Addr()
	}
	b.Uses = append(b.Uses, store.Use{
		ID: a.ID, DeviceID: d.ID, Prefix: netip.PrefixFrom(a.IP, part.Bits()), Management: true, Created: d.Created,
	})
	d.Addresses = append(d.Addresses, a)
	return errors.Join(tx.Blocks().Put(b), tx.Assigned().Put(&store.Assigned{ID: a.ID, DeviceID: d.ID, BlockID: b.ID}))
}
