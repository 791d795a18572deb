package metal

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/base/elapsed"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/inventory"
	"github.com/drover-dev/drover/internal/metal/request"
	"github.com/drover-dev/drover/internal/metal/store"
)

// cleanTimeout is how long metal tries to restore the server of a deleted device. Then the device
// goes and the server waits for a reset.
const cleanTimeout = 10 * time.Minute

// claimServer gives the device a server, in the transaction that records the device, so that two
// devices never share one.
func (c *call) claimServer(tx *store.Tx, d *store.Device, o request.Order) error {
	if !c.networks.Own {
		return nil
	}
	all, err := tx.AllServers()
	if err != nil {
		return err
	}
	s := inventory.Choose(all, inventory.Order{Plan: d.Plan, Metro: d.Metro, Facility: o.OnlyFacility(), ID: d.ReservationID})
	if s == nil {
		return request.Unprocessable("Server is not provisionable")
	}
	if err := s.Claim(d.ID, c.now()); err != nil {
		return err
	}
	d.ServerID = s.ID
	return c.putServer(tx, s)
}

// addressServer gives the device the address of its server.
func (c *call) addressServer(tx *store.Tx, d *store.Device) error {
	s, err := tx.Servers().Get(d.ServerID)
	if err != nil {
		return fmt.Errorf("reading the server of device %q: %w", d.ID, err)
	}
	address, gateway := s.Address()
	if !address.IsValid() {
		return request.Unprocessable(fmt.Sprintf("Server %s has no known address", s.Name))
	}
	if err := tx.TakeAddress(address.Addr(), d.ID); err != nil {
		if errors.Is(err, store.ErrFull) {
			return request.Unprocessable(fmt.Sprintf("The address %s of server %s is in use by another device or reservation", address.Addr(), s.Name))
		}
		return err
	}
	seq, err := tx.Sequence()
	if err != nil {
		return err
	}
	// Clients take a public address for the one that they reach a device at.
	b := &store.Block{
		ID: store.NewID(), Seq: seq, ProjectID: d.ProjectID, Type: "public_ipv4", State: blockCreated, Management: true, Created: d.Created,
		Prefix: netip.PrefixFrom(address.Addr(), address.Addr().BitLen()), Network: address.Masked(), Gateway: gateway, Metro: d.Metro, Facility: d.Facility,
	}
	if address.Addr().Is6() {
		b.Type = "public_ipv6"
	}
	a := store.Address{
		ID: store.NewID(), BlockID: b.ID, IP: address.Addr(), Prefix: address.Masked(), Gateway: gateway, Public: true, Management: true, Created: d.Created,
	}
	b.Uses = []store.Use{{ID: a.ID, DeviceID: d.ID, Prefix: address, Created: d.Created}}
	d.Addresses = append(d.Addresses, a)
	return errors.Join(tx.Blocks().Put(b), tx.Assigned().Put(&store.Assigned{ID: a.ID, DeviceID: d.ID, BlockID: b.ID}))
}

// followDevice updates the server of a device in the transaction that changes the device.
func (s *Server) followDevice(tx *store.Tx, d *store.Device) error {
	server, err := tx.ServerOf(d)
	if err != nil || server == nil {
		return err
	}
	before := server.State
	switch {
	case d.Deleting:
		server.Release(d.ID, s.now())
	case d.State == StateActive:
		server.RecordBoot(d.ID, s.now())
	}
	if server.State == before {
		return nil
	}
	return s.putServer(tx, server)
}

// returnServer ends the use of a server in the transaction that deletes its device.
func (s *Server) returnServer(tx *store.Tx, d *store.Device, unclean *driver.Problem) error {
	server, err := tx.ServerOf(d)
	if err != nil || server == nil {
		return err
	}
	server.Return(d.ID, unclean, s.now())
	if unclean != nil {
		s.log.Warn("a server is out of use", "server", server.Name, "reason", unclean.Message)
	}
	return s.putServer(tx, server)
}

// abandoned decides what a failed removal means: a server that can't be restored is taken out of
// use so that its device can go, instead of keeping the device forever.
func (s *Server) abandoned(id string, failed error) (*driver.Problem, error) {
	var unclean *driver.UncleanError
	if errors.As(failed, &unclean) {
		return &unclean.Problem, nil
	}
	if failed == nil {
		return nil, nil // There is no problem.
	}
	var server *inventory.Server
	err := s.store.View(func(tx *store.Tx) error {
		d, err := tx.Devices().Get(id)
		if err != nil {
			return err
		}
		server, err = tx.ServerOf(d)
		return err
	})
	if err != nil || server == nil || server.State != inventory.Cleaning || elapsed.Since(server.Since, s.now()) < cleanTimeout {
		return nil, failed
	}
	return &driver.Problem{
		Check: "clean", Message: fmt.Sprintf("could not be restored for %s after its machine was deleted: %v", cleanTimeout, failed),
		Remedy: "make sure that it is off or reachable, then run `drover server reset " + server.Name + "`",
	}, nil
}

// driverServerOf returns the server of a device for the driver, or nil if it has none.
func (s *Server) driverServerOf(tx *store.Tx, d *store.Device) (*driver.Server, error) {
	server, err := tx.ServerOf(d)
	if err != nil || server == nil {
		return nil, err
	}
	return s.driverServer(server)
}

// driverServer returns a server with its secrets.
func (s *Server) driverServer(server *inventory.Server) (*driver.Server, error) {
	out := &driver.Server{ID: server.ID, Name: server.Name, Facts: server.Facts}
	if server.SSH != nil {
		out.SSH = *server.SSH
	}
	var err error
	if out.Secrets, err = s.sealer.Open(server.ID, server.Sealed); err != nil {
		return nil, fmt.Errorf("server %q: %w", server.Name, err)
	}
	return out, nil
}

// ServerOf makes Server a driver.Inventory.
func (s *Server) ServerOf(id string) (server driver.Server, found bool, err error) {
	err = s.store.View(func(tx *store.Tx) error {
		d, err := tx.Devices().Get(id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		has, err := s.driverServerOf(tx, d)
		if err == nil && has != nil {
			server, found = *has, true
		}
		return err
	})
	return server, found, err
}

// sameKey compares two public keys without their comments.
func sameKey(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	return len(x) > 1 && len(y) > 1 && x[0] == y[0] && x[1] == y[1]
}

// PinHostKey makes Server a driver.Inventory. A key that is known already stays, and another one is
// an error: the caller may have an older record.
func (s *Server) PinHostKey(id, host, key string) error {
	return s.store.Update(func(tx *store.Tx) error {
		server, err := tx.Servers().Get(id)
		if err != nil {
			return err
		}
		if server.SSH == nil {
			return nil
		}
		to := server.SSH
		if b := to.Bastion; b != nil && b.Host == host && to.Host != host {
			to = b
		}
		switch {
		case to.Host != host:
			return nil
		case to.HostKey != "" && !sameKey(to.HostKey, key):
			return fmt.Errorf("another key of %s has been pinned since", host)
		case to.HostKey != "":
			return nil
		}
		to.HostKey = key
		return tx.Servers().Put(server)
	})
}
