package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"

	"github.com/drover-dev/drover/internal/base/atomicfile"
)

const (
	networkFile = "network.json"
	// subnetBits is the size of a network: a thousand machines.
	subnetBits = 22
	// metadataPort is the preferred port of the metadata service.
	metadataPort = 80
)

// The address spaces of networks. The first is reserved for benchmarks of network devices, so no
// real host uses it.
func publicSpace() netip.Prefix  { return netip.MustParsePrefix("198.18.0.0/15") }
func privateSpace() netip.Prefix { return netip.MustParsePrefix("10.128.0.0/9") }

// network is the single network of a home. It is selected once and kept.
type network struct {
	Public       netip.Prefix `json:"public"`
	Private      netip.Prefix `json:"private"`
	MetadataPort uint16       `json:"metadataPort"`
}

// gateway returns the host's address in a network: the first one.
func gateway(p netip.Prefix) netip.Addr { return p.Masked().Addr().Next() }

func (n network) metadata() netip.AddrPort {
	if n.MetadataPort == 0 {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(gateway(n.Public), n.MetadataPort)
}

// subnet returns the n-th network of the space.
func subnet(space netip.Prefix, number uint32) netip.Prefix {
	count := uint32(1) << (subnetBits - space.Bits())
	base := space.Masked().Addr().As4()
	n := uint32(base[0])<<24 | uint32(base[1])<<16 | uint32(base[2])<<8 | uint32(base[3])
	n += number % count << (32 - subnetBits)
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), subnetBits)
}

// choose returns the first unused network, starting from one that depends on the name of the home.
func choose(name string, space netip.Prefix, used []netip.Prefix) (netip.Prefix, error) {
	h := fnv.New32a()
	h.Write([]byte(name))
	count := uint32(1) << (subnetBits - space.Bits())
	for i := range count {
		p := subnet(space, h.Sum32()+i)
		free := true
		for _, u := range used {
			free = free && !u.Overlaps(p)
		}
		if free {
			return p, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("no unused network in %s on this host", space)
}

func (d *Driver) bridgeName() string { return "drv" + d.name }

// openNetwork reads or selects the network and ensures that it exists.
func (d *Driver) openNetwork() (network, error) {
	n, err := d.readNetwork()
	if errors.Is(err, os.ErrNotExist) {
		n, err = d.chooseNetwork()
	}
	if err != nil {
		return n, err
	}
	return n, d.ensureBridge(n)
}

func (d *Driver) readNetwork() (n network, err error) {
	data, err := os.ReadFile(filepath.Join(d.home, networkFile))
	if err != nil {
		return n, err
	}
	err = json.Unmarshal(data, &n)
	return n, err
}

func (d *Driver) chooseNetwork() (n network, err error) {
	used, err := usedNetworks()
	if err != nil {
		return n, err
	}
	if n.Public, err = choose(d.name, publicSpace(), used); err != nil {
		return n, err
	}
	if n.Private, err = choose(d.name, privateSpace(), used); err != nil {
		return n, err
	}
	return n, d.writeNetwork(n)
}

func (d *Driver) writeNetwork(n network) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(d.home, networkFile), data, 0o600)
}

// usedNetworks returns the networks of the host's links.
func usedNetworks() (used []netip.Prefix, err error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			used = append(used, p.Masked())
		}
	}
	return used, nil
}

// ensureBridge creates the bridge with the host's addresses.
func (d *Driver) ensureBridge(n network) error {
	name := d.bridgeName()
	link, err := netlink.LinkByName(name)
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
			return fmt.Errorf("adding %q: %w", name, err)
		}
		link, err = netlink.LinkByName(name)
	}
	if err != nil {
		return err
	}
	if err := d.mark(link); err != nil {
		return err
	}
	if err := disableIPv6(name); err != nil {
		return err
	}
	for _, p := range []netip.Prefix{n.Public, n.Private} {
		if err := addAddress(link, netip.PrefixFrom(gateway(p), p.Bits())); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(link)
}

func (d *Driver) removeBridge() error { return removeLink(d.bridgeName()) }

// linkName returns the name of the host's end of a machine's link. Link names have at most 15
// characters.
func (d *Driver) linkName(id string) string {
	h := fnv.New32a()
	h.Write([]byte(id))
	return fmt.Sprintf("%s%06x", d.linkPrefix(), h.Sum32()&0xffffff)
}

// linkPrefix starts the names of the links of all machines of the home.
func (d *Driver) linkPrefix() string { return "v" + d.name }

// removeLink removes the link that a killed machine-run may have left. Usually the link disappears
// with the machine.
func (d *Driver) removeLink(id string) error { return removeLink(d.linkName(id)) }

func removeLink(name string) error {
	link, err := netlink.LinkByName(name)
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		return nil
	}
	if err != nil {
		return err
	}
	err = netlink.LinkDel(link)
	if _, err := netlink.LinkByName(name); err != nil {
		return nil //nolint:nilerr // already removed
	}
	return err
}

// MetadataListener implements driver.Metadata. The port is kept, since the packet filters of
// machines refer to it.
func (d *Driver) MetadataListener() (net.Listener, error) {
	wanted := d.network.MetadataPort
	if wanted == 0 {
		wanted = metadataPort
	}
	ip := gateway(d.network.Public)
	l, err := net.Listen("tcp", netip.AddrPortFrom(ip, wanted).String())
	if err != nil && d.network.MetadataPort == 0 {
		l, err = net.Listen("tcp", netip.AddrPortFrom(ip, 0).String())
	}
	if err != nil {
		return nil, fmt.Errorf("listening for the metadata service: %w", err)
	}
	address, ok := l.Addr().(*net.TCPAddr)
	if ok && uint16(address.Port) != d.network.MetadataPort {
		d.network.MetadataPort = uint16(address.Port)
		err = d.writeNetwork(d.network)
	}
	return l, err
}
