package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

func TestElasticAddressIsPinnedToOneMachine(t *testing.T) {
	var p pins
	own, elastic := netip.MustParseAddr("198.18.0.2"), netip.MustParseAddr("198.18.0.9")
	p.assign("a", []netip.Addr{own, elastic})
	p.assign("b", []netip.Addr{elastic})
	if !slices.Equal(p.addresses["a"], []netip.Addr{own}) || !slices.Equal(p.addresses["b"], []netip.Addr{elastic}) {
		t.Errorf("pins: %v", p.addresses)
	}
}

func TestStaleSpecTakesNoAddressFromAnother(t *testing.T) {
	var p pins
	own, elastic := netip.MustParseAddr("198.18.0.2"), netip.MustParseAddr("198.18.0.9")
	p.assign("a", []netip.Addr{own, elastic})
	p.assign("b", []netip.Addr{elastic})
	p.keep("a", []netip.Addr{own, elastic}) // It boots with the spec of before.
	if !slices.Equal(p.addresses["a"], []netip.Addr{own}) || !slices.Equal(p.addresses["b"], []netip.Addr{elastic}) {
		t.Errorf("pins: %v", p.addresses)
	}
}

func TestEndpointIsPinnedToAllItsMachines(t *testing.T) {
	address := netip.MustParseAddr
	own, endpoint := address("198.18.0.2"), address("198.18.0.9")
	spec := func(id string, endpoint netip.Addr, all ...netip.Addr) guest.Spec {
		return guest.Spec{ID: id, Endpoint: endpoint, Elastic: all}
	}
	var p pins
	for _, s := range []guest.Spec{
		spec("a", endpoint, own), spec("b", endpoint), spec("older", netip.Addr{}), spec("tenant", address("198.18.0.8")),
	} {
		p.pin(s)
	}
	check := func(when string, want map[string][]netip.Addr) {
		t.Helper()
		for id, have := range p.allowed() {
			if !slices.Equal(have, want[id]) {
				t.Errorf("%s: machine %q may use %v, want %v", when, id, have, want[id])
			}
		}
	}
	tenant := []netip.Addr{address("198.18.0.8")}
	shared := map[string][]netip.Addr{"a": {own, endpoint}, "b": {endpoint}, "tenant": tenant}
	check("at first", shared)
	p.assign("older", []netip.Addr{endpoint})
	check("while an older machine has it", map[string][]netip.Addr{"a": {own}, "older": {endpoint}, "tenant": tenant})
	p.assign("older", nil)
	check("after it was unassigned", shared)
	p.remove("b")
	check("after a machine was removed", map[string][]netip.Addr{"a": {own, endpoint}, "tenant": tenant})
	p.pin(spec("a", netip.Addr{}, own))
	check("after a machine was reinstalled without it", map[string][]netip.Addr{"a": {own}, "tenant": tenant})
}

// lan is a bridge with the ports of machines. Their network namespaces are all that exists of them.
type lan struct {
	*Driver
	t *testing.T
}

func newLAN(t *testing.T) *lan {
	t.Helper()
	if err := isRoot(); err != nil {
		t.Skip(err)
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip(err)
	}
	home := t.TempDir()
	d := &Driver{home: home, name: Name(home)}
	used, err := usedNetworks()
	if err == nil {
		d.network.Public, err = choose(d.name, publicSpace(), used)
	}
	if err == nil {
		d.network.Private, err = choose(d.name, privateSpace(), used)
	}
	if err == nil {
		err = d.ensureBridge(d.network)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.removeBridge(); err != nil {
			t.Error(err)
		}
		if err := d.removeFilter(); err != nil {
			t.Error(err)
		}
	})
	return &lan{Driver: d, t: t}
}

// station is a machine on the bridge.
type station struct {
	*lan

	spec guest.Spec
	pid  int
}

func (l *lan) station(id string, number byte, elastic ...netip.Addr) *station {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), "sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s := &station{lan: l, pid: cmd.Process.Pid, spec: guest.Spec{ID: id, Elastic: elastic}}
	for _, p := range []netip.Prefix{l.network.Public, l.network.Private} {
		s.spec.Addresses = append(s.spec.Addresses, guest.Address{IP: l.address(p, number), Prefix: p, Gateway: gateway(p)})
	}
	if err := l.pin(s.spec); err != nil {
		l.t.Fatal(err)
	}
	if err := l.attachLink(id, s.pid); err != nil {
		l.t.Fatal(err)
	}
	s.inside(func(link netlink.Link) error {
		// Without IPv6, the machine sends nothing by itself.
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return netlink.LinkSetUp(link)
	})
	return s
}

// address returns an address of a network by its number.
func (l *lan) address(p netip.Prefix, number byte) netip.Addr {
	a := p.Masked().Addr().As4()
	a[3] = number
	return netip.AddrFrom4(a)
}

func (s *station) inside(f func(netlink.Link) error) {
	s.t.Helper()
	err := inNetwork(s.pid, func() error {
		link, err := netlink.LinkByName(guest.LinkName)
		if err != nil {
			return err
		}
		return f(link)
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// send puts a frame on the wire, as root on the machine can.
func (s *station) send(frame []byte) {
	s.t.Helper()
	s.inside(func(link netlink.Link) error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index, Halen: 6})
	})
}

// listen returns a socket that receives every frame that reaches the machine.
func (s *station) listen() int {
	s.t.Helper()
	var fd int
	s.inside(func(link netlink.Link) (err error) {
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		all := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL})
		return unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index, Protocol: all})
	})
	s.t.Cleanup(func() { unix.Close(fd) })
	s.patience(fd, 10*time.Second)
	return fd
}

func (s *station) patience(fd int, d time.Duration) {
	s.t.Helper()
	timeout := unix.NsecToTimeval(int64(d))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		s.t.Fatal(err)
	}
}

// awaitLink waits until the bridge forwards frames of the machine to a listener: ports come up
// asynchronously.
func (s *station) awaitLink(fd int) {
	s.t.Helper()
	s.patience(fd, 20*time.Millisecond)
	defer s.patience(fd, 10*time.Second)
	hello := frames{from: hardwareAddr(s.spec.ID), to: everyone}.ip(s.spec.Addresses[0].IP, "<hello>")
	buffer := make([]byte, 2048)
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); {
		s.send(hello)
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err == nil && bytes.Contains(buffer[:n], []byte("<hello>")) {
			return
		}
	}
	s.t.Fatal("the bridge forwards nothing")
}

var everyone = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// frames builds frames whose payload is a marker.
type frames struct {
	from, to net.HardwareAddr
	vlan     bool
	// host is the destination of IP packets; a broadcast address if it is not set.
	host netip.Addr
}

func (f frames) ethernet(kind uint16, payload []byte) []byte {
	out := slices.Concat(f.to, f.from)
	if f.vlan {
		out = append(out, 0x81, 0, 0, 0)
	}
	return append(binary.BigEndian.AppendUint16(out, kind), payload...)
}

func (f frames) ip(source netip.Addr, marker string) []byte {
	body := []byte(marker)
	header := []byte{0x45, 0, 0, byte(20 + len(body)), 0, 0, 0, 0, 64, 253, 0, 0}
	header = append(header, source.AsSlice()...)
	destination := netip.AddrFrom4([4]byte{198, 18, 255, 255})
	if f.host.IsValid() {
		destination = f.host
	}
	header = append(header, destination.AsSlice()...)
	binary.BigEndian.PutUint16(header[10:], checksum(header))
	return f.ethernet(unix.ETH_P_IP, append(header, body...))
}

// checksum returns the checksum of Internet protocols. The length must be even.
func checksum(data []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(data); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum + sum>>16)
}

// advertisement announces the sender as a router, with a prefix for addresses.
func (f frames) advertisement(router netip.Addr, prefix netip.Prefix) []byte {
	body := []byte{134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}
	body = append(body, 3, 4, byte(prefix.Bits()), 0xc0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	body = append(body, prefix.Addr().AsSlice()...)
	all := netip.MustParseAddr("ff02::1")
	pseudo := slices.Concat(router.AsSlice(), all.AsSlice(), []byte{0, 0, 0, byte(len(body)), 0, 0, 0, 58})
	binary.BigEndian.PutUint16(body[2:], checksum(slices.Concat(pseudo, body)))
	header := slices.Concat([]byte{0x60, 0, 0, 0, 0, byte(len(body)), 58, 255}, router.AsSlice(), all.AsSlice())
	return f.ethernet(unix.ETH_P_IPV6, append(header, body...))
}

func (f frames) ip6(marker string) []byte {
	header := []byte{0x60, 0, 0, 0, 0, byte(len(marker)), 59, 255}
	header = append(header, netip.MustParseAddr("fe80::1").AsSlice()...)
	header = append(header, netip.MustParseAddr("ff02::1").AsSlice()...)
	return f.ethernet(unix.ETH_P_IPV6, append(header, marker...))
}

func (f frames) arp(sender net.HardwareAddr, claimed netip.Addr, marker string) []byte {
	body := []byte{0, 1, 8, 0, 6, 4, 0, 2}
	body = append(append(body, sender...), claimed.AsSlice()...)
	body = append(append(body, f.to...), claimed.AsSlice()...)
	return f.ethernet(unix.ETH_P_ARP, append(body, marker...))
}

// TestMachineCannotUseAddressesOfOthers sends frames from one machine and checks which of them its
// neighbor receives. After each, it sends one that must arrive, so nothing waits for time to pass.
func TestMachineCannotUseAddressesOfOthers(t *testing.T) {
	l := newLAN(t)
	assigned, free := l.address(l.network.Public, 200), l.address(l.network.Public, 201)
	attacker, victim := l.station("attacker", 10, assigned), l.station("victim", 11, l.address(l.network.Public, 202))
	own, other := hardwareAddr("attacker"), hardwareAddr("victim")
	honest, direct := frames{from: own, to: everyone}, frames{from: own, to: other}
	forged, tagged := frames{from: other, to: everyone}, frames{from: own, to: everyone, vlan: true}
	mine, neighbor := attacker.spec.Addresses[0].IP, victim.spec.Addresses[0].IP
	router, metadata, pod := gateway(l.network.Public), netip.MustParseAddr(guest.MetadataIP), netip.MustParseAddr("192.168.7.7")

	in := victim.listen()
	attacker.awaitLink(in)
	for i, tt := range []struct {
		name    string
		arrives bool
		frame   func(marker string) []byte
	}{
		{"its own address", true, func(m string) []byte { return honest.ip(mine, m) }},
		{"its own address, to one machine", true, func(m string) []byte { return direct.ip(mine, m) }},
		{"its own private address", true, func(m string) []byte { return honest.ip(attacker.spec.Addresses[1].IP, m) }},
		{"an elastic address that it has", true, func(m string) []byte { return honest.ip(assigned, m) }},
		{"the address of a Pod", true, func(m string) []byte { return direct.ip(pod, m) }},
		{"ARP for its own address", true, func(m string) []byte { return honest.arp(own, mine, m) }},
		{"ARP for an elastic address that it has", true, func(m string) []byte { return honest.arp(own, assigned, m) }},
		{"an ARP probe", true, func(m string) []byte { return honest.arp(own, netip.IPv4Unspecified(), m) }},
		{"the address of a neighbor", false, func(m string) []byte { return honest.ip(neighbor, m) }},
		{"the private address of a neighbor", false, func(m string) []byte { return honest.ip(victim.spec.Addresses[1].IP, m) }},
		{"the elastic address of a neighbor", false, func(m string) []byte { return honest.ip(victim.spec.Elastic[0], m) }},
		{"an elastic address that is not assigned", false, func(m string) []byte { return honest.ip(free, m) }},
		{"the address of the gateway", false, func(m string) []byte { return direct.ip(router, m) }},
		{"the address of the metadata service", false, func(m string) []byte { return direct.ip(metadata, m) }},
		{"a loopback address", false, func(m string) []byte { return direct.ip(netip.MustParseAddr("127.0.0.1"), m) }},
		{"the MAC address of a neighbor", false, func(m string) []byte { return forged.ip(mine, m) }},
		{"a neighbor's address behind a VLAN tag", false, func(m string) []byte { return tagged.ip(neighbor, m) }},
		{"ARP for the address of a neighbor", false, func(m string) []byte { return honest.arp(own, neighbor, m) }},
		{"ARP for the address of the gateway", false, func(m string) []byte { return honest.arp(own, router, m) }},
		{"ARP for the gateway, to one machine", false, func(m string) []byte { return direct.arp(own, router, m) }},
		{"ARP for the metadata service", false, func(m string) []byte { return honest.arp(own, metadata, m) }},
		{"ARP with the MAC address of a neighbor", false, func(m string) []byte { return honest.arp(other, mine, m) }},
		{"ARP from the MAC address of a neighbor", false, func(m string) []byte { return forged.arp(own, mine, m) }},
		{"IPv6, such as router advertisements", false, honest.ip6},
		{"a spanning tree or any other protocol", false, func(m string) []byte { return honest.ethernet(0x88cc, []byte(m)) }},
	} {
		marker, next := fmt.Sprintf("<frame %d>", i), fmt.Sprintf("<next %d>", i)
		attacker.send(tt.frame(marker))
		attacker.send(honest.ip(mine, next))
		if got := receive(t, in, marker, next); got != tt.arrives {
			t.Errorf("a machine uses %s: arrives %t, want %t", tt.name, got, tt.arrives)
		}
	}
}

// TestOnlyItsControlPlaneClaimsAnEndpoint lets machines announce an endpoint, and checks which of
// them a neighbor hears.
func TestOnlyItsControlPlaneClaimsAnEndpoint(t *testing.T) {
	l := newLAN(t)
	endpoint, other := l.address(l.network.Public, 200), l.address(l.network.Public, 201)
	member, second, tenant := l.station("member", 10), l.station("second", 11), l.station("tenant", 12)
	older, neighbor := l.station("older", 13), l.station("neighbor", 14)
	for s, address := range map[*station]netip.Addr{member: endpoint, second: endpoint, tenant: other} {
		s.spec.Endpoint = address
		if err := l.pin(s.spec); err != nil {
			t.Fatal(err)
		}
	}
	in := neighbor.listen()
	claims := func(s *station) bool {
		own := frames{from: hardwareAddr(s.spec.ID), to: everyone}
		s.awaitLink(in)
		s.send(own.arp(own.from, endpoint, "<claim>"))
		s.send(own.ip(s.spec.Addresses[0].IP, "<next>"))
		return receive(t, in, "<claim>", "<next>")
	}
	check := func(when string, want map[*station]bool) {
		t.Helper()
		for _, s := range []*station{member, second, tenant, older} {
			if got := claims(s); got != want[s] {
				t.Errorf("%s: machine %q claims the endpoint: %t, want %t", when, s.spec.ID, got, want[s])
			}
		}
	}
	check("at first", map[*station]bool{member: true, second: true})
	older.spec.Elastic = []netip.Addr{endpoint}
	if err := l.pinAssigned(older.spec); err != nil {
		t.Fatal(err)
	}
	check("while it is assigned to an older machine", map[*station]bool{older: true})
	if err := l.unpin(older.spec.ID); err != nil {
		t.Fatal(err)
	}
	older.spec.Elastic = nil
	if err := l.pinAssigned(older.spec); err != nil {
		t.Fatal(err)
	}
	check("afterwards", map[*station]bool{member: true, second: true})
}

// receive reports whether a frame with the marker arrives before the next one.
func receive(t *testing.T, fd int, marker, next string) bool {
	t.Helper()
	arrived := false
	buffer := make([]byte, 2048)
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			t.Fatalf("waiting for frame %s: %v", next, err)
		}
		arrived = arrived || bytes.Contains(buffer[:n], []byte(marker))
		if bytes.Contains(buffer[:n], []byte(next)) {
			return arrived
		}
	}
}

// TestNeighborDoesNotReceiveTrafficOfOthers: the bridge floods no frames for machines that it has
// not heard yet.
func TestNeighborDoesNotReceiveTrafficOfOthers(t *testing.T) {
	l := newLAN(t)
	sender, silent, sniffer := l.station("sender", 10), l.station("silent", 11), l.station("sniffer", 12)
	out := frames{from: hardwareAddr("sender"), to: hardwareAddr("silent")}
	fd, wanted := sniffer.listen(), silent.listen()
	sender.awaitLink(fd)
	sender.awaitLink(wanted)
	sender.send(out.ip(sender.spec.Addresses[0].IP, "<secret>"))
	out.to = everyone
	sender.send(out.ip(sender.spec.Addresses[0].IP, "<next>"))
	if receive(t, fd, "<secret>", "<next>") {
		t.Error("a neighbor receives traffic between two others")
	}
	if !receive(t, wanted, "<secret>", "<next>") {
		t.Error("the machine does not receive its traffic")
	}
}

func TestUnpinnedPortsSendNothing(t *testing.T) {
	l := newLAN(t)
	a, b := l.station("a", 10), l.station("b", 11)
	fd := b.listen()
	a.awaitLink(fd)
	if err := l.unpin("a"); err != nil {
		t.Fatal(err)
	}
	a.send(frames{from: hardwareAddr("a"), to: everyone}.ip(a.spec.Addresses[0].IP, "<lost>"))
	if err := l.pin(a.spec); err != nil {
		t.Fatal(err)
	}
	a.send(frames{from: hardwareAddr("a"), to: everyone}.ip(a.spec.Addresses[0].IP, "<next>"))
	if receive(t, fd, "<lost>", "<next>") {
		t.Error("a machine without pinned addresses sends")
	}
	rules, err := exec.CommandContext(t.Context(), "nft", strings.Fields("list "+l.filterTable())...).CombinedOutput()
	if err != nil || !strings.Contains(string(rules), l.linkName("a")) {
		t.Errorf("%v: %s", err, rules)
	}
}

// configure gives a station its addresses, and a server that answers with its name and the address
// of the client.
func (s *station) configure() {
	s.t.Helper()
	s.inside(func(link netlink.Link) error {
		for _, a := range s.spec.Addresses {
			if err := guest.AddAddress(link, netip.PrefixFrom(a.IP, a.Prefix.Bits())); err != nil {
				return err
			}
		}
		l, err := net.Listen("tcp", ":7000")
		if err != nil {
			return err
		}
		s.t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
				fmt.Fprint(conn, s.spec.ID+" "+host)
				conn.Close()
			}
		}()
		return nil
	})
}

// ask connects from an address to a station, and returns the response.
func ask(from, to netip.Addr) (string, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	if from.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: from.AsSlice()}
	}
	conn, err := d.Dial("tcp", netip.AddrPortFrom(to, 7000).String())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	answer := make([]byte, 64)
	n, err := conn.Read(answer)
	return string(answer[:n]), err
}

// TestPinnedMachinesCommunicate covers what machines of a cluster need: each other, the host, Pods
// behind a peer, and an elastic address that moves.
func TestPinnedMachinesCommunicate(t *testing.T) {
	l := newLAN(t)
	a, b := l.station("a", 10), l.station("b", 11)
	a.configure()
	b.configure()
	fd := b.listen()
	a.awaitLink(fd)
	expect := func(name, want string, ask func() (string, error)) {
		t.Helper()
		if got, err := ask(); err != nil || got != want {
			t.Errorf("%s: got %q, want %q (%v)", name, got, want, err)
		}
	}
	within := func(s *station, from, to netip.Addr) func() (string, error) {
		return func() (got string, err error) {
			s.inside(func(netlink.Link) error {
				got, err = ask(from, to)
				return nil
			})
			return got, err
		}
	}
	public, private := a.spec.Addresses[0].IP, a.spec.Addresses[1].IP
	expect("between machines", "b "+public.String(), within(a, netip.Addr{}, b.spec.Addresses[0].IP))
	expect("on the private network", "b "+private.String(), within(a, netip.Addr{}, b.spec.Addresses[1].IP))
	expect("from the host", "a "+gateway(l.network.Public).String(), func() (string, error) { return ask(netip.Addr{}, public) })

	pod := netip.MustParseAddr("192.168.7.7")
	a.inside(func(link netlink.Link) error { return guest.AddAddress(link, netip.PrefixFrom(pod, 32)) })
	b.inside(func(link netlink.Link) error {
		return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: public.AsSlice(), Dst: &net.IPNet{IP: pod.AsSlice(), Mask: net.CIDRMask(32, 32)}})
	})
	expect("from a Pod behind a machine", "b "+pod.String(), within(a, pod, b.spec.Addresses[0].IP))

	elastic := l.address(l.network.Public, 200)
	for _, s := range []*station{a, b} { // b gets it while a still has it
		s.spec.Elastic = []netip.Addr{elastic}
		if err := l.pinAssigned(s.spec); err != nil {
			t.Fatal(err)
		}
		if err := moveAddresses(s.pid, s.spec.Elastic, nil); err != nil {
			t.Fatal(err)
		}
		expect("an elastic address", s.spec.ID+" "+gateway(l.network.Public).String(), func() (string, error) { return ask(netip.Addr{}, elastic) })
	}
}
