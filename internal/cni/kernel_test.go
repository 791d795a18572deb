package cni

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/knftables"
)

// inNamespace runs the test in a network namespace of its own, with one link
// in 10.0.0.0/24. The thread ends with the test, and the namespace with it.
func inNamespace(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "peer0"}
	if err := netlink.LinkAdd(pair); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"eth0", "peer0"} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(link); err != nil {
			t.Fatal(err)
		}
	}
	link, _ := netlink.LinkByName("eth0")
	address, _ := netlink.ParseAddr("10.0.0.1/24")
	if err := netlink.AddrAdd(link, address); err != nil {
		t.Fatal(err)
	}
}

func TestRoutesInTheKernelFollow(t *testing.T) {
	inNamespace(t)
	a := Route{To: netip.MustParsePrefix("192.168.1.0/24"), Via: netip.MustParseAddr("10.0.0.2")}
	b := Route{To: netip.MustParsePrefix("192.168.2.0/24"), Via: netip.MustParseAddr("10.0.0.3")}
	moved := Route{To: a.To, Via: netip.MustParseAddr("10.0.0.9")}
	for _, step := range []struct {
		want    []Route
		changes int
	}{{[]Route{a, b}, 2}, {[]Route{a, b}, 0}, {[]Route{moved}, 2}, {nil, 1}} {
		changed, err := syncRoutes(step.want)
		if err != nil || changed != step.changes {
			t.Errorf("routes %v: %d changes, %v; want %d", step.want, changed, err, step.changes)
		}
		have, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: routeOwner}, netlink.RT_FILTER_PROTOCOL)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, fromKernel(have), compareAddrs); diff != "" {
			t.Errorf("in the kernel (-want +got):\n%s", diff)
		}
	}
	if links, _ := netlink.RouteList(nil, netlink.FAMILY_V4); len(links) == 0 {
		t.Error("the route of the link itself is gone")
	}
}

func TestOneUnreachablePeerDoesNotStopTheOthers(t *testing.T) {
	inNamespace(t)
	bad := Route{To: netip.MustParsePrefix("192.168.1.0/24"), Via: netip.MustParseAddr("172.31.0.1")}
	good := Route{To: netip.MustParsePrefix("192.168.2.0/24"), Via: netip.MustParseAddr("10.0.0.3")}
	if _, err := syncRoutes([]Route{bad, good}); err == nil || !strings.Contains(err.Error(), "172.31.0.1") {
		t.Errorf("error = %v, want one that names the peer", err)
	}
	have, _ := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: routeOwner}, netlink.RT_FILTER_PROTOCOL)
	if diff := cmp.Diff([]Route{good}, fromKernel(have), compareAddrs); diff != "" {
		t.Errorf("in the kernel (-want +got):\n%s", diff)
	}
}

func TestMasqueradeSparesPods(t *testing.T) {
	d := Desired{Ranges: prefixes("192.168.0.0/24"), Cluster: prefixes("192.168.0.0/24", "192.168.1.0/24")}
	fake := knftables.NewFake(knftables.IPv4Family, tableName)
	for range 2 { // the second time replaces the first
		if err := masquerade(context.Background(), fake, knftables.IPv4Family, d); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"ip saddr 192.168.0.0/24 ip daddr 192.168.0.0/24 return",
		"ip saddr 192.168.0.0/24 ip daddr 192.168.1.0/24 return",
		"ip saddr 192.168.0.0/24 ip daddr != 224.0.0.0/4 masquerade",
	}
	rules, err := fake.ListRules(context.Background(), chainName)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rules {
		got = append(got, r.Rule)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestTheKernelTakesTheTable(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("nft is not installed")
	}
	inNamespace(t)
	nft, err := knftables.New(knftables.IPv4Family, tableName)
	if err != nil {
		t.Skipf("nftables does not work here: %v", err)
	}
	d := Desired{Ranges: prefixes("192.168.0.0/24"), Cluster: prefixes("192.168.0.0/24")}
	for range 2 {
		if err := masquerade(context.Background(), nft, knftables.IPv4Family, d); err != nil {
			t.Fatal(err)
		}
	}
}
