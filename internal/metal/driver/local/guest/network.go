package guest

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// MetadataIP is the address of the metadata service on Packet machines.
const MetadataIP = "169.254.169.254"

// metadataNames are the former and current names of the metadata service.
func metadataNames() []string {
	return []string{"metadata.platformequinix.com", "metadata.packet.net", "metadata"}
}

// setUpNetwork configures the addresses and routes of the machine. It may be repeated.
func setUpNetwork(s Spec) error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return err
	}
	link, err := netlink.LinkByName(LinkName)
	if err != nil {
		return fmt.Errorf("finding the link to the host: %w", err)
	}
	for _, a := range s.Addresses {
		if err := AddAddress(link, netip.PrefixFrom(a.IP, a.Prefix.Bits())); err != nil {
			return err
		}
	}
	for _, ip := range s.Elastic {
		if err := AddAddress(link, netip.PrefixFrom(ip, ip.BitLen())); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	if err := addDefaultRoute(link, s.Addresses); err != nil {
		return err
	}
	return setSysctls(networkSysctls())
}

// AddAddress adds an address to a link, unless the link has it.
func AddAddress(link netlink.Link, p netip.Prefix) error {
	ip := p.Addr().Unmap()
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(p.Bits(), ip.BitLen())}}
	if ip.Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	if err := netlink.AddrAdd(link, addr); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("adding address %s: %w", p, err)
	}
	return nil
}

// addDefaultRoute adds a route through the first gateway.
func addDefaultRoute(link netlink.Link, addresses []Address) error {
	for _, a := range addresses {
		if !a.Gateway.IsValid() || a.Gateway.Is6() {
			continue
		}
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: a.Gateway.AsSlice(), Src: a.IP.AsSlice()}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("adding the route through %s: %w", a.Gateway, err)
		}
		return nil
	}
	return nil
}

// networkSysctls are settings that nodes need. A machine answers ARP only for addresses of the link
// that receives the request: an elastic address that scripts put on the loopback of several
// machines belongs to the one it is assigned to.
func networkSysctls() map[string]string {
	return map[string]string{
		"net/ipv4/ip_forward": "1", "net/ipv6/conf/all/forwarding": "1",
		"net/ipv4/conf/all/arp_ignore": "1", "net/ipv4/conf/all/arp_announce": "2",
		"net/ipv4/ip_unprivileged_port_start": "0", "net/ipv4/ping_group_range": fmt.Sprint("0 ", lastUser()),
		"net/bridge/bridge-nf-call-iptables": "1", "net/bridge/bridge-nf-call-ip6tables": "1",
	}
}

// lastUser returns the highest number of a group that settings of the network accept.
func lastUser() int {
	data, err := os.ReadFile("/proc/self/gid_map")
	if fields := strings.Fields(string(data)); err == nil && len(fields) == 3 && fields[1] != "0" {
		if count, err := strconv.Atoi(fields[2]); err == nil {
			return count - 1
		}
	}
	return math.MaxInt32
}

// setSysctls skips settings that the kernel lacks.
func setSysctls(values map[string]string) error {
	for name, value := range values {
		err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o600)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// loadRules loads rules of the machine's packet filter, which have a table of their own.
func loadRules(p *processes, name, rules string) error {
	file := "/run/drover/" + name + ".nft"
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		return err
	}
	return p.run(command{argv: []string{"nft", "-f", file}, env: baseEnv(), out: os.Stdout})
}

// guardRules drop traffic to the metadata service that the machine forwards, which is that of its
// Pods: the service can't tell it from the machine's own. They apply after the translation of
// Service addresses, so a Service for the metadata service doesn't get around them.
func guardRules(s Spec) string {
	const table = "table ip drover-guard"
	if !s.Metadata.IsValid() {
		return table + "\n"
	}
	return fmt.Sprintf(table+"\ndelete "+table+"\n"+table+` {
chain forward {
type filter hook forward priority -10
ip daddr %s drop
ip daddr %s tcp dport %d drop
}
}
`, MetadataIP, s.Metadata.Addr(), s.Metadata.Port())
}

// rules redirect the well-known address to the metadata service and reject traffic that the host
// would have to forward. The host drops it, and a rejected sender retries at once instead of timing
// out after half a minute: CoreDNS, for example, starts before the addresses of services work.
func rules(s Spec) string {
	var b strings.Builder
	b.WriteString("table ip drover\ndelete table ip drover\ntable ip drover {\n")
	for _, a := range s.Addresses {
		if !a.Gateway.Is4() {
			continue
		}
		for _, hook := range []string{"output", "forward"} {
			fmt.Fprintf(&b, "chain %[1]s_%[2]s {\ntype filter hook %[1]s priority 0\nrt ip nexthop %[3]s ip daddr != %[4]s reject with icmp net-unreachable\n}\n",
				hook, strings.ReplaceAll(a.Gateway.String(), ".", "_"), a.Gateway, a.Prefix.Masked())
		}
	}
	if s.Metadata.IsValid() {
		fmt.Fprintf(&b, "chain metadata_output {\ntype nat hook output priority -100\nip daddr %s tcp dport 80 dnat to %s\n}\n", MetadataIP, s.Metadata)
		fmt.Fprintf(&b, "chain metadata_postrouting {\ntype nat hook postrouting priority 100\nct status dnat ip daddr %s tcp dport %d masquerade\n}\n",
			s.Metadata.Addr(), s.Metadata.Port())
	}
	b.WriteString("}\n")
	return b.String()
}

// writeNames writes the files for name resolution.
func writeNames(s Spec) error {
	for name, content := range map[string]string{"hosts": s.hosts(), "resolv.conf": s.resolvers(), "hostname": s.Hostname + "\n"} {
		if err := os.WriteFile(filepath.Join("/etc", name), []byte(content), 0o644); err != nil { //nolint:gosec // all may resolve names
			return err
		}
	}
	return unix.Sethostname([]byte(s.Hostname))
}

// hosts is the content of /etc/hosts.
func (s Spec) hosts() string {
	var hosts strings.Builder
	hosts.WriteString("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
	if s.Metadata.IsValid() {
		fmt.Fprintf(&hosts, "%s %s\n", MetadataIP, strings.Join(metadataNames(), " "))
	}
	short, _, _ := strings.Cut(s.Hostname, ".")
	for _, a := range s.Addresses {
		names := s.Hostname
		if short != s.Hostname {
			names += " " + short
		}
		fmt.Fprintf(&hosts, "%s %s\n", a.IP, names)
	}
	return hosts.String()
}

// resolvers is the content of /etc/resolv.conf.
func (s Spec) resolvers() string {
	resolv := "# The first process of the machine answers, from the file hosts.\n"
	if len(s.Addresses) > 0 {
		resolv += fmt.Sprintf("nameserver %s\n", s.Addresses[0].IP)
	}
	return resolv
}
