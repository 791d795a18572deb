package store

import (
	"cmp"
	"errors"
	"slices"

	"github.com/drover-dev/drover/internal/metal/inventory"
)

// AllServers returns the inventory, oldest first.
func (t *Tx) AllServers() ([]*inventory.Server, error) {
	all, err := t.Servers().All(func(*inventory.Server) bool { return true })
	slices.SortFunc(all, func(a, b *inventory.Server) int { return cmp.Compare(a.Seq, b.Seq) })
	return all, err
}

// ServerNamed returns the server with a name or an ID, or ErrNotFound.
func (t *Tx) ServerNamed(name string) (*inventory.Server, error) {
	s, err := t.Servers().Get(name)
	if !errors.Is(err, ErrNotFound) {
		return s, err
	}
	found, err := t.Servers().All(func(s *inventory.Server) bool { return s.Name == name })
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, ErrNotFound
	}
	return found[0], nil
}

// ServerOf returns the server of a device, or nil if it has none. The record of the server decides.
func (t *Tx) ServerOf(d *Device) (*inventory.Server, error) {
	if d.ServerID == "" {
		return nil, nil // There is none.
	}
	s, err := t.Servers().Get(d.ServerID)
	if errors.Is(err, ErrNotFound) || err == nil && s.DeviceID != d.ID {
		return nil, nil // It was taken away.
	}
	return s, err
}
