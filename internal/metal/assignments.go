package metal

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

func listAssignments(c *call) (*reply, error) {
	d, err := c.device()
	if err != nil {
		return nil, err
	}
	pg, err := c.paged(blocksPerPage)
	if err != nil {
		return nil, err
	}
	out := api.IPAssignments{IPAddresses: []api.IPAssignment{}, Meta: pg.meta(len(d.Addresses))}
	for _, a := range slice(pg, d.Addresses) {
		out.IPAddresses = append(out.IPAddresses, c.link().assignment(a, d.ID))
	}
	return ok(out)
}

// assignAddress assigns an address of a reserved block to a device.
func assignAddress(c *call) (*reply, error) {
	d, err := c.device()
	if err != nil {
		return nil, err
	}
	var req api.IPAssign
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	want, err := request.ParseAddress(req.Address)
	if err != nil {
		return nil, err
	}
	var a store.Address
	err = c.change(d.ID, func(tx *store.Tx, d *store.Device) (err error) {
		a, err = c.assign(tx, d, want)
		return err
	})
	if err != nil {
		return nil, notFound(err)
	}
	c.devices.enqueue(d.ID)
	return created(c.link().assignment(a, d.ID))
}

func (c *call) assign(tx *store.Tx, d *store.Device, want netip.Prefix) (store.Address, error) {
	b, err := c.blockWith(tx, d.ProjectID, want)
	if err != nil {
		return store.Address{}, err
	}
	switch {
	case d.Deleting:
		return store.Address{}, request.Unprocessable("Cannot assign an address to a device that is deprovisioning")
	case b.Management:
		return store.Address{}, request.Unprocessable(want.Addr().String() + " is the management address of a device")
	case b.Metro != "" && b.Metro != d.Metro:
		return store.Address{}, request.Unprocessable("The address " + want.Addr().String() + " is in metro " + b.Metro + ", the device is in " + d.Metro)
	case slices.ContainsFunc(b.Uses, func(u store.Use) bool { return u.Prefix.Overlaps(want) }):
		return store.Address{}, request.Unprocessable("Address " + want.Addr().String() + " is already assigned to a device")
	}
	u := store.Use{ID: store.NewID(), DeviceID: d.ID, Prefix: want, Created: c.now()}
	a := addressOf(b, u)
	b.Uses = append(b.Uses, u)
	d.Addresses = append(d.Addresses, a)
	return a, errors.Join(tx.Blocks().Put(b), tx.Assigned().Put(&store.Assigned{ID: a.ID, DeviceID: d.ID, BlockID: b.ID}))
}

// blockWith returns the block of a project that contains an address.
func (s *Server) blockWith(tx *store.Tx, project string, want netip.Prefix) (*store.Block, error) {
	for length := want.Bits(); length >= want.Addr().BitLen()-8; length-- {
		first := netip.PrefixFrom(want.Addr(), length).Masked().Addr()
		for _, id := range s.store.Blocks().All(store.Query{Project: project, Terms: []string{"address:" + first.String()}}) {
			b, err := tx.Blocks().Get(id)
			if err == nil && b.Prefix.Bits() <= want.Bits() && b.Prefix.Contains(want.Addr()) {
				return b, nil
			}
		}
	}
	return nil, request.Unprocessable(want.Addr().String() + " is not part of an address block of this project")
}

// ipObject is the object behind an ID below /ips: a block, or one assigned address of a block.
type ipObject struct {
	block *store.Block
	use   *store.Use
}

func (c *call) ipObject(tx *store.Tx) (ipObject, error) {
	id := strings.ToLower(c.r.PathValue("ip"))
	blockID := id
	assigned, err := tx.Assigned().Get(id)
	if err == nil {
		blockID = assigned.BlockID
	} else if !errors.Is(err, store.ErrNotFound) {
		return ipObject{}, err
	}
	b, err := tx.Blocks().Get(blockID)
	if err != nil {
		return ipObject{}, notFound(err)
	}
	if !c.who.mayUse(b.ProjectID) {
		return ipObject{}, errNotFound
	}
	o := ipObject{block: b}
	if i := slices.IndexFunc(b.Uses, func(u store.Use) bool { return u.ID == id }); i >= 0 {
		o.use = &b.Uses[i]
	}
	return o, nil
}

func (c *call) viewIP() (ipObject, error) {
	var o ipObject
	err := c.store.View(func(tx *store.Tx) (err error) {
		o, err = c.ipObject(tx)
		return err
	})
	return o, err
}

func getIP(c *call) (*reply, error) {
	o, err := c.viewIP()
	if err != nil {
		return nil, err
	}
	if o.use != nil {
		return ok(c.link().assignment(addressOf(o.block, *o.use), o.use.DeviceID))
	}
	return ok(c.link().block(o.block))
}

func updateBlock(c *call) (*reply, error) {
	o, err := c.viewIP()
	if err != nil {
		return nil, err
	}
	var req api.IPReservationUpdate
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if req.Tags != nil {
		if message := request.TagProblem(*req.Tags); message != "" {
			return nil, request.Unprocessable(message)
		}
	}
	defer c.store.Lock(o.block.ID)()
	err = c.store.Update(func(tx *store.Tx) (err error) {
		if o, err = c.ipObject(tx); err != nil {
			return err
		}
		set(&o.block.Tags, req.Tags)
		set(&o.block.Details, req.Details)
		if req.CustomData != nil {
			o.block.CustomData = json.RawMessage(req.CustomData)
		}
		return tx.Blocks().Put(o.block)
	})
	if err != nil {
		return nil, err
	}
	return ok(c.link().block(o.block))
}

// deleteIP unassigns an address from its device or releases a whole block.
func deleteIP(c *call) (*reply, error) {
	o, err := c.viewIP()
	if err != nil {
		return nil, err
	}
	if o.block.Management || o.use != nil && o.use.Management {
		return nil, request.Unprocessable("A management address cannot be removed from its device")
	}
	if o.use != nil {
		err = c.unassign(o)
	} else {
		err = c.release(o)
	}
	if err != nil {
		return nil, err
	}
	return noContent()
}

func (c *call) unassign(o ipObject) error {
	defer c.devices.enqueue(o.use.DeviceID)
	err := c.change(o.use.DeviceID, func(tx *store.Tx, d *store.Device) error {
		b, err := tx.Blocks().Get(o.block.ID)
		if err != nil {
			return err
		}
		b.Uses = slices.DeleteFunc(b.Uses, func(u store.Use) bool { return u.ID == o.use.ID })
		d.Addresses = slices.DeleteFunc(d.Addresses, func(a store.Address) bool { return a.ID == o.use.ID })
		return errors.Join(tx.Blocks().Put(b), tx.Assigned().Delete(o.use.ID))
	})
	return notFound(err)
}

// A release waits a moment for devices that are being deprovisioned and still have addresses of the
// block: clients release it right after they deleted its last device.
const (
	releasePatience = 10 * time.Second
	releasePoll     = 50 * time.Millisecond
)

// awaitLeaving waits until devices that are being deprovisioned have left a block.
func (c *call) awaitLeaving(block string) {
	late := time.NewTimer(releasePatience)
	defer late.Stop()
	poll := time.NewTicker(releasePoll)
	defer poll.Stop()
	for c.isBeingLeft(block) {
		select {
		case <-poll.C:
		case <-late.C:
			return
		case <-c.r.Context().Done():
			return
		}
	}
}

// isBeingLeft reports whether all devices with addresses of a block are being deprovisioned.
func (c *call) isBeingLeft(block string) bool {
	left := false
	err := c.store.View(func(tx *store.Tx) error {
		b, err := tx.Blocks().Get(block)
		if err != nil {
			return err
		}
		left = len(b.Uses)+len(b.Movers) > 0
		users := slices.Clone(b.Movers)
		for _, use := range b.Uses {
			users = append(users, use.DeviceID)
		}
		for _, id := range users {
			d, err := tx.Devices().Get(id)
			left = left && err == nil && d.Deleting
		}
		return nil
	})
	return err == nil && left
}

func (c *call) release(o ipObject) error {
	c.awaitLeaving(o.block.ID)
	defer c.store.Lock(o.block.ID)()
	return c.store.Update(func(tx *store.Tx) error {
		o, err := c.ipObject(tx)
		if err != nil {
			return err
		}
		if len(o.block.Uses) > 0 {
			return request.Unprocessable("The block has addresses that are assigned to devices: unassign them first")
		}
		if len(o.block.Movers) > 0 {
			return request.Unprocessable("The block has the endpoint of a cluster, which its devices move: delete them first")
		}
		return tx.DropBlock(o.block)
	})
}

// availableAddresses lists the free parts of a block, by size.
func availableAddresses(c *call) (*reply, error) {
	o, err := c.viewIP()
	if err != nil {
		return nil, err
	}
	length := 32
	if err := bounded(c.r.URL.Query(), "cidr", 128, &length); err != nil {
		return nil, err
	}
	out := api.IPAvailable{Available: []string{}}
	for _, part := range freeParts(o.block, length) {
		out.Available = append(out.Available, part.String())
	}
	return ok(out)
}

// freeParts returns the prefixes of a length in which no address is assigned.
func freeParts(b *store.Block, length int) []netip.Prefix {
	var out []netip.Prefix
	if !b.Prefix.IsValid() || length < b.Prefix.Bits() || length > b.Prefix.Addr().BitLen() {
		return out
	}
	for a := b.Prefix.Masked().Addr(); b.Prefix.Contains(a); a = a.Next() {
		part := netip.PrefixFrom(a, length)
		if part.Masked().Addr() != a || slices.ContainsFunc(b.Uses, func(u store.Use) bool { return u.Prefix.Overlaps(part) }) {
			continue
		}
		out = append(out, part)
	}
	return out
}
