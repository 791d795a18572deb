package store

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Pool is a prefix that addresses are taken from.
type Pool struct {
	Prefix netip.Prefix
	// Reserve excludes this many addresses at the start, and the last one.
	Reserve int
}

// pools records, per prefix, where the last search ended, so that allocating an address does not
// scan all allocated ones. Only the single write transaction uses it.
type pools struct {
	next map[netip.Prefix]netip.Addr
}

// Take allocates count consecutive free addresses, aligned to count, to owner. Released addresses
// are reused as late as possible.
func (t *Tx) Take(p Pool, count int, owner string) (netip.Addr, error) {
	if t.store.pools.next == nil {
		t.store.pools.next = map[netip.Prefix]netip.Addr{}
	}
	begin := aligned(skip(p.Prefix.Masked().Addr(), p.Reserve), count)
	start := t.store.pools.next[p.Prefix]
	if !start.IsValid() || !p.Prefix.Contains(start) {
		start = begin
	}
	start = aligned(start, count)
	found, ok := t.search(p, count, start, netip.Addr{})
	if !ok {
		found, ok = t.search(p, count, begin, start)
	}
	if !ok {
		return netip.Addr{}, fmt.Errorf("taking %d addresses from %s: %w", count, p.Prefix, ErrFull)
	}
	t.store.pools.next[p.Prefix] = skip(found, count)
	return found, t.own(found, count, owner)
}

// TakeAddress allocates one address that is not chosen from a pool. It returns ErrFull if another
// owner has it.
func (t *Tx) TakeAddress(a netip.Addr, owner string) error {
	if !t.free(a, 1) {
		return fmt.Errorf("taking %s: %w", a, ErrFull)
	}
	return t.own(a, 1, owner)
}

// search searches from start up to, but not including, end.
func (t *Tx) search(p Pool, count int, start, end netip.Addr) (netip.Addr, bool) {
	for a := start; a.IsValid() && a != end; a = skip(a, count) {
		last := skip(a, count-1)
		if !last.IsValid() || !p.Prefix.Contains(last) || p.Reserve > 0 && !p.Prefix.Contains(last.Next()) {
			return netip.Addr{}, false
		}
		if t.free(a, count) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

func (t *Tx) free(a netip.Addr, count int) bool {
	b := t.bucket(bucketAddresses)
	for range count {
		if b.Get(a.AsSlice()) != nil {
			return false
		}
		a = a.Next()
	}
	return true
}

func (t *Tx) own(a netip.Addr, count int, owner string) error {
	b := t.change(bucketAddresses)
	for range count {
		if err := b.Put(a.AsSlice(), []byte(owner)); err != nil {
			return err
		}
		a = a.Next()
	}
	return nil
}

// Release releases the addresses of a prefix.
func (t *Tx) Release(p netip.Prefix) error {
	b := t.change(bucketAddresses)
	for a := p.Masked().Addr(); p.Contains(a); a = a.Next() {
		if err := b.Delete(a.AsSlice()); err != nil {
			return err
		}
	}
	return nil
}

// skip returns the address n after a, or an invalid one past the last.
func skip(a netip.Addr, n int) netip.Addr {
	raw := a.As16()
	carry := uint(n)
	for i := len(raw) - 1; i >= 0 && carry > 0; i-- {
		carry += uint(raw[i])
		raw[i] = byte(carry)
		carry >>= 8
	}
	out := netip.AddrFrom16(raw)
	if a.Is4() {
		if !out.Is4In6() {
			return netip.Addr{}
		}
		return out.Unmap()
	}
	return out
}

// aligned rounds a up to a multiple of count, which is a power of two.
func aligned(a netip.Addr, count int) netip.Addr {
	raw := a.AsSlice()
	last := int(raw[len(raw)-1])
	return skip(a, (count-last%count)%count)
}

// dropAddresses releases the addresses of a device.
func (t *Tx) dropAddresses(d *Device) error {
	if err := t.dropMover(d); err != nil {
		return err
	}
	for _, a := range d.Addresses {
		if err := t.Assigned().Delete(a.ID); err != nil {
			return err
		}
		b, err := t.Blocks().Get(a.BlockID)
		if err != nil {
			if errors.Is(err, ErrNotFound) {
				continue
			}
			return err
		}
		if err := t.returnTo(b, d); err != nil {
			return err
		}
	}
	return nil
}

// dropMover forgets that a device moves an address.
func (t *Tx) dropMover(d *Device) error {
	if d.EndpointID == "" {
		return nil
	}
	b, err := t.Blocks().Get(d.EndpointID)
	if err != nil {
		return ignoreNotFound(err)
	}
	b.Movers = slices.DeleteFunc(b.Movers, func(id string) bool { return id == d.ID })
	return t.keepUnlessDropped(b)
}

// returnTo returns the addresses of a device to their block. The block is deleted if it was made
// for the device, or if its project is deleted and no other device uses it.
func (t *Tx) returnTo(b *Block, d *Device) error {
	if b.Management {
		return t.DropBlock(b)
	}
	b.Uses = slices.DeleteFunc(b.Uses, func(u Use) bool { return u.DeviceID == d.ID })
	return t.keepUnlessDropped(b)
}

func (t *Tx) keepUnlessDropped(b *Block) error {
	dropped, err := t.isDropped(b.ProjectID)
	if err != nil {
		return err
	}
	if dropped && len(b.Uses) == 0 && len(b.Movers) == 0 {
		return t.DropBlock(b)
	}
	return t.Blocks().Put(b)
}

// DropBlock deletes a block and releases its addresses.
func (t *Tx) DropBlock(b *Block) error {
	if b.Prefix.IsValid() {
		if err := t.Release(b.Prefix); err != nil {
			return err
		}
	}
	return t.Blocks().Delete(b.ID)
}

func ignoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
