package metal

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/fault"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

// createDevice records a device and responds. The driver acts later.
func createDevice(c *call) (*reply, error) {
	p, err := c.project()
	if err != nil {
		return nil, err
	}
	var req api.DeviceCreate
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	o, err := request.OrderOf(&req)
	if err != nil {
		return nil, err
	}
	d, err := c.place(p, o, &req)
	if err != nil {
		return nil, err
	}
	c.devices.enqueue(d.ID)
	return created(c.renderDevice(d, req.Userdata))
}

// place stores the device together with everything it claims, or nothing.
func (c *call) place(p *store.Project, o request.Order, req *api.DeviceCreate) (*store.Device, error) {
	d := newDevice(p, o, req, c.now())
	if err := c.applyDeviceFaults(d, o); err != nil {
		return nil, err
	}
	template := *d
	err := c.store.Update(func(tx *store.Tx) (err error) {
		*d = template
		if _, err := tx.Projects().Get(p.ID); err != nil {
			return err // Deleted since the request began.
		}
		if d.Seq, err = tx.Sequence(); err != nil {
			return err
		}
		claim := func(tx *store.Tx, d *store.Device, _ *api.DeviceCreate) error {
			return errors.Join(c.claimCapacity(tx, d, o), c.claimServer(tx, d, o))
		}
		for _, fill := range []func(*store.Tx, *store.Device, *api.DeviceCreate) error{c.chooseKeys, c.claimHardware, claim, c.addressDevice, c.joinEndpoint} {
			if err := fill(tx, d, req); err != nil {
				return err
			}
		}
		if err := tx.SetUserdata(d.ID, []byte(req.Userdata)); err != nil {
			return err
		}
		return tx.AddDevice(d)
	})
	return d, notFound(err)
}

func newDevice(p *store.Project, o request.Order, req *api.DeviceCreate, now time.Time) *store.Device {
	d := &store.Device{
		ID: store.NewID(), ProjectID: p.ID, Hostname: req.Hostname, Description: req.Description, Tags: slices.Clone(req.Tags),
		Metro: o.Metro, Facility: o.Facility, Plan: o.Plan, OS: req.OperatingSystem, BillingCycle: req.BillingCycle,
		CustomData: json.RawMessage(req.CustomData), Storage: json.RawMessage(req.Storage), IPXEScriptURL: req.IPXEScriptURL, AlwaysPXE: req.AlwaysPXE,
		Locked: req.Locked, SpotInstance: req.SpotInstance, SpotPriceMax: float64(req.SpotPriceMax), TerminationTime: o.Termination,
		Power: string(driver.On), State: StateQueued, Created: now, Updated: now,
	}
	if d.Hostname == "" {
		d.Hostname = strings.ReplaceAll(o.Plan, ".", "-") + "-" + d.ID[:8]
	}
	return d
}

// applyDeviceFaults applies injected faults to a new device.
func (c *call) applyDeviceFaults(d *store.Device, o request.Order) error {
	if _, hit := c.faults.StrikeDevice(d.ProjectID, fault.NoCapacity, d.Hostname); hit {
		return o.Full()
	}
	if f, hit := c.faults.StrikeDevice(d.ProjectID, fault.SlowProvisioning, d.Hostname); hit {
		d.HoldUntil = c.now().Add(time.Duration(f.Delay))
	}
	if f, hit := c.faults.StrikeDevice(d.ProjectID, fault.FailProvisioning, d.Hostname); hit {
		d.Doomed, d.Vanish, d.HoldUntil = true, f.Status, c.now().Add(time.Duration(f.Delay))
	}
	return nil
}

// chooseKeys attaches the requested keys, or all keys of the project.
func (c *call) chooseKeys(tx *store.Tx, d *store.Device, req *api.DeviceCreate) error {
	for _, k := range req.SSHKeys {
		key := c.newSSHKey(d.ProjectID, k)
		if err := tx.SSHKeys().Put(key); err != nil {
			return err
		}
		d.SSHKeyIDs = append(d.SSHKeyIDs, key.ID)
	}
	for _, id := range req.ProjectSSHKeys {
		key, err := tx.SSHKeys().Get(id)
		if err != nil || key.ProjectID != "" && key.ProjectID != d.ProjectID {
			return request.Unprocessable(fmt.Sprintf("%s is not a valid ssh key of this project", id))
		}
		d.SSHKeyIDs = append(d.SSHKeyIDs, id)
	}
	if len(d.SSHKeyIDs) > 0 || req.NoSSHKeys {
		return nil
	}
	keys, err := tx.SSHKeys().All(func(k *store.SSHKey) bool { return k.ProjectID == "" || k.ProjectID == d.ProjectID })
	for _, k := range keys {
		d.SSHKeyIDs = append(d.SSHKeyIDs, k.ID)
	}
	if _, hit := c.faults.StrikeDevice(d.ProjectID, fault.RequireSSHKeys, d.Hostname); hit && len(keys) == 0 {
		return request.Unprocessable("You must have at least one SSH key, or send no_ssh_keys")
	}
	return err
}

// addressDevice assigns the management addresses of a device.
func (c *call) addressDevice(tx *store.Tx, d *store.Device, req *api.DeviceCreate) error {
	if c.networks.Own {
		return c.addressServer(tx, d)
	}
	n := c.networks
	for _, kind := range []struct {
		name   string
		prefix netip.Prefix
		public bool
	}{{"public_ipv4", n.Public, true}, {"private_ipv4", n.Private, false}, {"public_ipv6", n.PublicV6, true}} {
		want, wanted := wantedAddress(req.IPAddresses, kind.prefix.Addr(), kind.public)
		if !kind.prefix.IsValid() || !wanted {
			continue
		}
		if len(want.IPReservations) > 0 {
			if err := c.reservedAddress(tx, d, want, kind.name); err != nil {
				return err
			}
			continue
		}
		b, err := c.managementBlock(tx, d, kind.prefix)
		if errors.Is(err, store.ErrFull) {
			return request.Refuse(http.StatusUnprocessableEntity, "There are no free addresses in %s", kind.prefix)
		}
		if err != nil {
			return err
		}
		b.Type = kind.name
		a := store.Address{
			ID: store.NewID(), BlockID: b.ID, IP: lastOf(b.Prefix), Prefix: b.Network, Gateway: b.Gateway,
			Public: kind.public, Management: true, Created: d.Created,
		}
		b.Uses = []store.Use{{ID: a.ID, DeviceID: d.ID, Prefix: netip.PrefixFrom(a.IP, a.Prefix.Bits()), Created: d.Created}}
		d.Addresses = append(d.Addresses, a)
		if err := errors.Join(tx.Blocks().Put(b), tx.Assigned().Put(&store.Assigned{ID: a.ID, DeviceID: d.ID, BlockID: b.ID})); err != nil {
			return err
		}
	}
	return nil
}

// wantedAddress returns how a request asks for a type of address, and whether it does. A request
// that names no type asks for all.
func wantedAddress(wanted []api.DeviceIPRequest, sample netip.Addr, public bool) (api.DeviceIPRequest, bool) {
	family := 4
	if sample.Is6() {
		family = 6
	}
	i := slices.IndexFunc(wanted, func(w api.DeviceIPRequest) bool { return w.AddressFamily == family && w.Public == public })
	if i >= 0 {
		return wanted[i], true
	}
	return api.DeviceIPRequest{}, len(wanted) == 0
}

// managementBlock allocates addresses for a device: two of its own, the first of which is the
// gateway, or one in the shared network.
func (c *call) managementBlock(tx *store.Tx, d *store.Device, from netip.Prefix) (*store.Block, error) {
	count := 2
	if c.networks.Flat {
		count = 1
	}
	first, err := tx.Take(c.pool(from), count, d.ID)
	if err != nil {
		return nil, err
	}
	seq, err := tx.Sequence()
	if err != nil {
		return nil, err
	}
	b := &store.Block{
		ID: store.NewID(), Seq: seq, ProjectID: d.ProjectID, State: "created", Management: true,
		Prefix: blockOf(first, count), Metro: d.Metro, Facility: d.Facility, Created: d.Created,
	}
	b.Network, b.Gateway = b.Prefix, first
	if c.networks.Flat {
		b.Network, b.Gateway = from.Masked(), from.Masked().Addr().Next()
	}
	return b, nil
}

// pool returns the pool for the addresses of a prefix. In a shared network, the first two addresses
// are reserved for the network and its gateway.
func (s *Server) pool(prefix netip.Prefix) store.Pool {
	if s.networks.Flat && !s.networks.Own {
		return store.Pool{Prefix: prefix, Reserve: 2}
	}
	return store.Pool{Prefix: prefix}
}

// blockOf returns the prefix of count addresses, a power of two, starting at first.
func blockOf(first netip.Addr, count int) netip.Prefix {
	return netip.PrefixFrom(first, first.BitLen()-bits.Len(uint(count))+1)
}

// lastOf returns the last address of a block of one or two addresses.
func lastOf(p netip.Prefix) netip.Addr {
	if p.IsSingleIP() {
		return p.Addr()
	}
	return p.Addr().Next()
}
