package bounded

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

const (
	dialTimeout = 10 * time.Second
	keepAlive   = 30 * time.Second
)

// OnHost reports whether an address belongs to the host itself or to services that only the host
// should reach, such as the metadata service of a cloud.
func OnHost(ip netip.Addr) bool { return zoneOf(ip) == onHost }

// zone is where an address is. Peers must not lead to a zone that is closer than their own.
type zone int

const (
	public zone = iota
	private
	onHost
)

// privateSpace has the networks that are private besides those of IsPrivate.
var privateSpace = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"),  // between providers and their customers
	netip.MustParsePrefix("198.18.0.0/15"),  // between devices under test
	netip.MustParsePrefix("fec0::/10"),      // within a site
	netip.MustParsePrefix("64:ff9b:1::/48"), // translated within a network
}

// metadataServices have addresses outside of the link-local networks.
var metadataServices = []netip.Addr{
	netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd20:ce::254"),
}

// translated has the networks whose addresses contain one of IPv4, and where it begins.
var translated = map[netip.Prefix]int{
	netip.MustParsePrefix("64:ff9b::/96"): 12,
	netip.MustParsePrefix("::/96"):        12,
	netip.MustParsePrefix("2002::/16"):    2,
}

func zoneOf(ip netip.Addr) zone {
	ip = ip.Unmap().WithZone("")
	switch {
	case !ip.IsValid(), ip.IsLoopback(), ip.IsLinkLocalUnicast(), ip.IsUnspecified(), ip.IsMulticast(), slices.Contains(metadataServices, ip):
		return onHost
	case ip.IsPrivate(), slices.ContainsFunc(privateSpace, func(p netip.Prefix) bool { return p.Contains(ip) }):
		return private
	}
	for network, begin := range translated {
		if network.Contains(ip) {
			bytes := ip.As16()
			return zoneOf(netip.AddrFrom4([4]byte(bytes[begin : begin+4])))
		}
	}
	return public
}

// DialAwayFromHost connects to anything but this host. It decides by the resolved address.
func DialAwayFromHost(ctx context.Context, network, address string) (net.Conn, error) {
	return dialWithin(ctx, private, network, address)
}

// dialWithin connects to addresses that are no closer than a zone.
func dialWithin(ctx context.Context, closest zone, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Control: func(_, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		switch z := zoneOf(at.Addr()); {
		case z <= closest:
			return nil
		case z == onHost:
			return fmt.Errorf("%q is an address of this host, where a peer must not lead", address)
		default:
			return fmt.Errorf("%q is a private address, where a public peer must not lead", address)
		}
	}}
	return d.DialContext(ctx, network, address)
}
