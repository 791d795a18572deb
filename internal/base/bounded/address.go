package bounded

import (
	"context"
	"fmt"
	"net"
	"net/netip"
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

// sharedSpace is the address space between providers and their customers.
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

func zoneOf(ip netip.Addr) zone {
	ip = ip.Unmap()
	switch {
	case !ip.IsValid(), ip.IsLoopback(), ip.IsLinkLocalUnicast(), ip.IsUnspecified(), ip.IsMulticast():
		return onHost
	case ip.IsPrivate(), sharedSpace.Contains(ip):
		return private
	default:
		return public
	}
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
