package local

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// isolate moves the test to a network of its own, which stands for the host's. It configures that
// host as badly as possible. The thread of the test ends with it.
func isolate(t *testing.T) {
	t.Helper()
	if err := isRoot(); err != nil {
		t.Skip(err)
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0",
		"ipv6/conf/all/disable_ipv6": "0", "ipv6/conf/default/disable_ipv6": "0",
		"ipv6/conf/default/accept_ra": "2", "ipv6/conf/default/accept_ra_defrtr": "1", "ipv6/conf/default/autoconf": "1",
	} {
		if err := os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(value), 0o600); err != nil {
			t.Skip("this kernel lacks a protocol: ", err)
		}
	}
}

// reserved returns the MAC addresses that bridges don't forward by themselves.
func reserved() (all []net.HardwareAddr) {
	for last := range byte(16) {
		all = append(all, net.HardwareAddr{0x01, 0x80, 0xc2, 0, 0, last})
	}
	return all
}

// TestMachineIsNoRouterOfTheHost: frames to reserved MAC addresses reach the host past the rules of
// bridges, unless their port sends them there.
func TestMachineIsNoRouterOfTheHost(t *testing.T) {
	isolate(t)
	l := newLAN(t)
	attacker := l.station("attacker", 10)
	attacker.awaitLink(l.station("neighbor", 11).listen())
	prefix, router := netip.MustParsePrefix("2001:db8:1::/64"), netip.MustParseAddr("fe80::bad")
	for _, to := range append(reserved(), everyone, net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}) {
		attacker.send(frames{from: hardwareAddr("attacker"), to: to}.advertisement(router, prefix))
	}
	l.expectOnly(attacker, nil)
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V6)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		if r.Protocol == unix.RTPROT_RA || r.Gw.Equal(router.AsSlice()) {
			t.Errorf("a machine gives the host the route %s", r)
		}
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_V6)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, ok := netip.AddrFromSlice(a.IP); ok && prefix.Contains(ip) {
			t.Errorf("a machine gives the host the address %s", a)
		}
	}
}

// TestForgedPacketsToReservedAddressesDoNotReachTheHost sends from the address of a neighbor.
func TestForgedPacketsToReservedAddressesDoNotReachTheHost(t *testing.T) {
	isolate(t)
	l := newLAN(t)
	attacker, neighbor := l.station("attacker", 10), l.station("neighbor", 11)
	attacker.awaitLink(neighbor.listen())
	l.expectOnly(attacker, func() {
		for _, to := range reserved() {
			forged := frames{from: hardwareAddr("attacker"), to: to, host: gateway(l.network.Public)}
			attacker.send(forged.ip(neighbor.spec.Addresses[0].IP, "<forged>"))
		}
	})
}

// expectOnly checks that the host receives an honest packet of the attacker after its attack, and
// no forged one before it.
func (l *lan) expectOnly(attacker *station, attack func()) {
	l.t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 253)
	if err != nil {
		l.t.Fatal(err)
	}
	defer unix.Close(fd)
	attacker.patience(fd, 10*time.Second)
	bridge, err := netlink.LinkByName(l.bridgeName())
	if err != nil {
		l.t.Fatal(err)
	}
	if attack != nil {
		attack()
	}
	honest := frames{from: hardwareAddr(attacker.spec.ID), to: bridge.Attrs().HardwareAddr, host: gateway(l.network.Public)}
	attacker.send(honest.ip(attacker.spec.Addresses[0].IP, "<honest>"))
	if receive(l.t, fd, "<forged>", "<honest>") {
		l.t.Error("the host receives packets from the address of a neighbor")
	}
}
