package endpoint

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// segment is the link on which machines share the address.
type segment struct {
	*arp

	link netlink.Link
}

func openSegment(name string, address netip.Addr) (*segment, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("finding link %q: %w", name, err)
	}
	a, err := openARP(link, address)
	if err != nil {
		return nil, err
	}
	return &segment{arp: a, link: link}, nil
}

// keep puts the address on the link. The kernel removes it when that many seconds are over, up to a
// second late.
func (s *segment) keep(seconds int) error {
	addr := s.netlinkAddress()
	addr.ValidLft, addr.PreferedLft = seconds, seconds
	if err := netlink.AddrReplace(s.link, addr); err != nil {
		return fmt.Errorf("adding address %s: %w", s.address, err)
	}
	return nil
}

// indefinite is the lifetime in seconds of an address that nobody else can take.
const indefinite = 5

// lifetime returns how many seconds the kernel keeps the address: rounded down, as it counts from
// now and is late. None is left when it is 0.
func lifetime(g Grant, now time.Time) int {
	if g.Until.IsZero() {
		return indefinite
	}
	return int(g.Until.Sub(now) / time.Second)
}

func (s *segment) drop() error {
	if err := netlink.AddrDel(s.link, s.netlinkAddress()); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("removing address %s: %w", s.address, err)
	}
	return nil
}

func (s *segment) netlinkAddress() *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: s.address.AsSlice(), Mask: net.CIDRMask(s.address.BitLen(), s.address.BitLen())}}
}
