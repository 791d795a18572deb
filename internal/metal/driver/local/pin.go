package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
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
}

// set gives addresses to a machine, and takes them from all others: an elastic address that moves
// belongs to the machine that got it last.
func (p *pins) set(id string, addresses []netip.Addr) {
	if p.addresses == nil {
		p.addresses = map[string][]netip.Addr{}
	}
	for other, have := range p.addresses {
		p.addresses[other] = slices.DeleteFunc(slices.Clone(have), func(a netip.Addr) bool { return slices.Contains(addresses, a) })
	}
	p.addresses[id] = slices.Clone(addresses)
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
	return d.changePins(func() { d.pins.set(s.ID, addressesOf(s)) })
}

// unpin forgets a machine.
func (d *Driver) unpin(id string) error {
	return d.changePins(func() { delete(d.pins.addresses, id) })
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
			d.pins.set(s.ID, addressesOf(s))
		}
	})
}

// changePins replaces the packet filter in one transaction.
func (d *Driver) changePins(change func()) error {
	d.pins.mu.Lock()
	defer d.pins.mu.Unlock()
	change()
	if err := nft(d.filterRules(d.pins.addresses)); err != nil {
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
ether type ip ip saddr { %[5]s, %[6]s, 127.0.0.0/8, 169.254.0.0/16 } iifname . ip saddr != @addresses drop
ether type ip accept
ether type != arp drop
iifname . arp saddr ether != @macs drop
arp saddr ip 0.0.0.0 accept
iifname . arp saddr ip != @addresses drop
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

// securePort makes the bridge send only frames for the machine to its port: a neighbor must not
// read the traffic of others while the bridge learns where they are.
func securePort(port netlink.Link, id string) error {
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
