package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// pins are the addresses that each machine may send from. The host's packet filter enforces them on
// the ports of the bridge, so that no machine takes over the address of a neighbor, of the gateway
// or of the metadata service, which identifies machines by their addresses.
type pins struct {
	mu sync.Mutex
	// addresses are the addresses of each machine, by ID.
	addresses map[string][]netip.Addr
	// endpoints are the addresses that machines move among themselves, by machine.
	endpoints map[string]netip.Addr
}

// pin gives a machine the address that it shares, and its own, except those that others have.
func (p *pins) pin(s guest.Spec) {
	if p.endpoints == nil {
		p.endpoints = map[string]netip.Addr{}
	}
	delete(p.endpoints, s.ID)
	if s.Endpoint.IsValid() {
		p.endpoints[s.ID] = s.Endpoint
	}
	p.keep(s.ID, addressesOf(s))
}

func (p *pins) remove(id string) {
	delete(p.addresses, id)
	delete(p.endpoints, id)
}

// allowed returns the addresses that each machine may use. One that machines share is theirs unless
// it is assigned to a machine that doesn't share it: an older one, which keeps it until it is
// unassigned.
func (p *pins) allowed() map[string][]netip.Addr {
	var assigned []netip.Addr
	for _, have := range p.addresses {
		assigned = append(assigned, have...)
	}
	all := maps.Clone(p.addresses)
	for id, endpoint := range p.endpoints {
		if !slices.Contains(assigned, endpoint) {
			all[id] = append(slices.Clone(all[id]), endpoint)
		}
	}
	return all
}

// assign gives addresses to a machine, and takes them from all others: an elastic address that
// moves belongs to the machine that got it last.
func (p *pins) assign(id string, addresses []netip.Addr) {
	for other, have := range p.addresses {
		p.addresses[other] = without(have, addresses)
	}
	p.keep(id, addresses)
}

// keep gives addresses to a machine, except those that others have by now: the spec of a machine
// may name an elastic address that has moved since.
func (p *pins) keep(id string, addresses []netip.Addr) {
	if p.addresses == nil {
		p.addresses = map[string][]netip.Addr{}
	}
	for other, have := range p.addresses {
		if other != id {
			addresses = without(addresses, have)
		}
	}
	p.addresses[id] = slices.Clone(addresses)
}

// without returns the addresses that are not among the others.
func without(addresses, others []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(addresses), func(a netip.Addr) bool { return slices.Contains(others, a) })
}

// addressesOf returns all addresses of a machine.
func addressesOf(s guest.Spec) []netip.Addr {
	var all []netip.Addr
	for _, a := range s.Addresses {
		all = append(all, a.IP)
	}
	return append(all, s.Elastic...)
}

// pin lets a machine use its addresses, and no others of the network.
func (d *Driver) pin(s guest.Spec) error {
	return d.changePins(func() { d.pins.pin(s) })
}

// pinAssigned is pin for a machine that just got addresses, maybe from others.
func (d *Driver) pinAssigned(s guest.Spec) error {
	return d.changePins(func() { d.pins.assign(s.ID, addressesOf(s)) })
}

// unpin forgets a machine.
func (d *Driver) unpin(id string) error {
	return d.changePins(func() { d.pins.remove(id) })
}

// pinAll pins the machines that exist when the driver starts.
func (d *Driver) pinAll(ids []string) error {
	var specs []guest.Spec
	for _, id := range ids {
		s, err := guest.ReadSpec(filepath.Join(d.machinesDir(), id))
		if errors.Is(err, fs.ErrNotExist) {
			continue // It was never provisioned, so it has no port.
		}
		if err != nil {
			return err
		}
		specs = append(specs, s)
	}
	return d.changePins(func() {
		for _, s := range specs {
			d.pins.pin(s)
		}
	})
}

// changePins replaces the packet filter in one transaction.
func (d *Driver) changePins(change func()) error {
	d.pins.mu.Lock()
	defer d.pins.mu.Unlock()
	change()
	if err := nft(d.filterRules(d.pins.allowed())); err != nil {
		return fmt.Errorf("pinning the addresses of local machines: %w", err)
	}
	return nil
}

// removeFilter removes the packet filter of the home.
func (d *Driver) removeFilter() error {
	table := d.filterTable()
	return nft(table + "\ndelete " + table + "\n")
}

func nft(rules string) error {
	var stderr bytes.Buffer
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin, cmd.Stderr = strings.NewReader(rules), &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("loading rules with nft: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}

func (d *Driver) filterTable() string { return "table bridge drover-" + d.name }

// filterRules are the rules for frames that machines send. A port may use its MAC address and the
// IPv4 addresses of its machine. Other sources are those of Pods, which peers route back to the
// machine: they pass, unless they belong to the host or to the network of machines. Nothing but
// IPv4 is spoken on the bridge; IPv6 would let machines announce themselves as routers of the host.
func (d *Driver) filterRules(machines map[string][]netip.Addr) string {
	var macs, addresses []string
	for _, id := range slices.Sorted(maps.Keys(machines)) {
		port := d.linkName(id)
		macs = append(macs, fmt.Sprintf("%q . %s", port, hardwareAddr(id)))
		for _, ip := range machines[id] {
			if ip.Is4() {
				addresses = append(addresses, fmt.Sprintf("%q . %s", port, ip))
			}
		}
	}
	table := d.filterTable()
	return fmt.Sprintf(`%[1]s
delete %[1]s
%[1]s {
set macs {
type ifname . ether_addr
%[2]s
}
set addresses {
type ifname . ipv4_addr
%[3]s
}
chain ports {
type filter hook prerouting priority -300
iifname != "%[4]s*" accept
iifname . ether saddr != @macs drop
ether type ip ip saddr != { %[5]s, %[6]s, 127.0.0.0/8, 169.254.0.0/16 } accept
ether type ip iifname . ip saddr @addresses accept
ether type arp iifname . arp saddr ether @macs arp saddr ip 0.0.0.0 accept
ether type arp iifname . arp saddr ether @macs iifname . arp saddr ip @addresses accept
drop
}
}
`, table, elements(macs), elements(addresses), d.linkPrefix(), d.network.Public.Masked(), d.network.Private.Masked())
}

func elements(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return "elements = { " + strings.Join(all, ", ") + " }"
}

// toFilter makes the bridge treat frames to reserved addresses (01:80:c2:00:00:0X) like others.
// Without it, the bridge hands them to the host before any filter sees them. Frames to the second
// one, which pause links, are always dropped.
const toFilter = 0xfffd

// securePort makes the bridge send all frames of the machine through the filter, and only frames
// for the machine to its port: a neighbor must not read the traffic of others while the bridge
// learns where they are. The host itself doesn't speak IPv6 there.
func securePort(port netlink.Link, id string) error {
	if err := disableIPv6(port.Attrs().Name); err != nil {
		return err
	}
	if err := netlink.LinkSetBRSlaveGroupFwdMask(port, toFilter); err != nil {
		return fmt.Errorf("filtering reserved addresses on port %q: %w", port.Attrs().Name, err)
	}
	entry := &netlink.Neigh{
		LinkIndex: port.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER, HardwareAddr: hardwareAddr(id),
	}
	if err := netlink.NeighSet(entry); err != nil {
		return fmt.Errorf("adding the address of port %q to the bridge: %w", port.Attrs().Name, err)
	}
	if err := netlink.LinkSetLearning(port, false); err != nil {
		return fmt.Errorf("disabling learning on port %q: %w", port.Attrs().Name, err)
	}
	if err := netlink.LinkSetFlood(port, false); err != nil {
		return fmt.Errorf("disabling flooding of port %q: %w", port.Attrs().Name, err)
	}
	return nil
}

// disableIPv6 makes the host ignore IPv6 on a link.
func disableIPv6(link string) error {
	file := filepath.Join("/proc/sys/net/ipv6/conf", link, "disable_ipv6")
	now, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(bytes.TrimSpace(now)) == "1" {
		return nil // The kernel lacks IPv6, or the host doesn't use it.
	}
	if err := os.WriteFile(file, []byte("1"), 0o600); err != nil {
		return fmt.Errorf("disabling IPv6 on link %q: %w", link, err)
	}
	return nil
}

// securePortOf secures the port of a machine that is running already. A machine without one reaches
// nobody.
func (d *Driver) securePortOf(id string) error {
	port, err := netlink.LinkByName(d.linkName(id))
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding the port of machine %q: %w", id, err)
	}
	return securePort(port, id)
}
