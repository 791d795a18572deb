package cni

import (
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/knftables"
)

// inNamespace runs the test in its own network namespace, with one link in 10.0.0.0/24. The thread
// and the namespace end with the test.
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

func TestKernelRoutesFollowNodes(t *testing.T) {
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
		t.Error("the route of the link was removed, want it kept")
	}
}

func TestOneUnreachablePeerDoesNotStopTheOthers(t *testing.T) {
	inNamespace(t)
	bad := Route{To: netip.MustParsePrefix("192.168.1.0/24"), Via: netip.MustParseAddr("172.31.0.1")}
	good := Route{To: netip.MustParsePrefix("192.168.2.0/24"), Via: netip.MustParseAddr("10.0.0.3")}
	if _, err := syncRoutes([]Route{bad, good}); err == nil || !strings.Contains(err.Error(), "172.31.0.1") {
		t.Errorf("got error %v, want one that names the peer", err)
	}
	have, _ := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: routeOwner}, netlink.RT_FILTER_PROTOCOL)
	if diff := cmp.Diff([]Route{good}, fromKernel(have), compareAddrs); diff != "" {
		t.Errorf("in the kernel (-want +got):\n%s", diff)
	}
}

func TestMasqueradeExcludesPods(t *testing.T) {
	d := Desired{Ranges: prefixes("192.168.0.0/24", "fd00::/64"), Cluster: prefixes("192.168.0.0/24", "192.168.1.0/24", "fd00::/64")}
	tests := map[knftables.Family]struct{ direct, rules []string }{
		knftables.IPv4Family: {
			direct: []string{"192.168.0.0/24", "192.168.1.0/24", "224.0.0.0/4"},
			rules:  []string{"ip saddr 192.168.0.0/24 ip daddr != @direct masquerade"},
		},
		knftables.IPv6Family: {
			direct: []string{"fd00::/64", "ff00::/8"},
			rules:  []string{"ip6 saddr fd00::/64 ip6 daddr != @direct masquerade"},
		},
	}
	for family, want := range tests {
		fake := knftables.NewFake(family, tableName)
		for range 2 { // the second time replaces the first
			if err := masquerade(t.Context(), fake, family, d); err != nil {
				t.Fatal(err)
			}
		}
		var direct, rules []string
		for _, e := range fake.Table.Sets[directSet].Elements {
			direct = append(direct, e.Key[0])
		}
		for _, r := range fake.Table.Chains[chainName].Rules {
			rules = append(rules, r.Rule)
		}
		if diff := cmp.Diff(want.direct, direct); diff != "" {
			t.Errorf("%s: what sees Pods (-want +got):\n%s", family, diff)
		}
		if diff := cmp.Diff(want.rules, rules); diff != "" {
			t.Errorf("%s: rules (-want +got):\n%s", family, diff)
		}
	}
}

// nodeAgent is an agent on node "a" whose watch has delivered these nodes.
func nodeAgent(t *testing.T, nodes ...*corev1.Node) *Agent {
	t.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("nft is not installed")
	}
	inNamespace(t)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for _, n := range nodes {
		if err := store.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	return &Agent{
		Node: "a", ConfDir: filepath.Join(t.TempDir(), "net.d"), Log: slog.New(slog.DiscardHandler),
		store: store, tables: map[knftables.Family]knftables.Interface{},
	}
}

// agentObjects lists the agent's objects in the kernel and on disk.
func agentObjects(t *testing.T, a *Agent) (all []string) {
	t.Helper()
	out, err := exec.Command("nft", "list", "tables").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for table := range strings.Lines(string(out)) {
		all = append(all, strings.TrimSpace(table))
	}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: routeOwner}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range fromKernel(routes) {
		all = append(all, "route "+r.To.String())
	}
	files, _ := os.ReadDir(a.ConfDir)
	for _, f := range files {
		all = append(all, "file "+f.Name())
	}
	return all
}

func TestRemovedRulesAreRestoredUntilCleanup(t *testing.T) {
	a := nodeAgent(t, node("a", []string{"192.168.0.0/24"}, "10.0.0.1"), node("b", []string{"192.168.1.0/24"}, "10.0.0.2"))
	want := []string{"table ip drover-cni", "route 192.168.1.0/24", "file " + conflistName}
	for _, step := range []struct {
		do   func() error
		want []string
	}{
		{func() error { return a.sync(t.Context()) }, want},
		{func() error { return a.sync(t.Context()) }, want},
		{func() error { return exec.Command("nft", "flush", "ruleset").Run() }, want[1:]},
		{func() error { _, err := syncRoutes(nil); return err }, want[2:]},
		{func() error { return a.sync(t.Context()) }, want},
		{func() error { return Clean(t.Context(), a.ConfDir) }, nil},
		{func() error { return Clean(t.Context(), a.ConfDir) }, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, agentObjects(t, a)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

func TestCleanupKeepsForeignRules(t *testing.T) {
	a := nodeAgent(t)
	if err := os.MkdirAll(a.ConfDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.ConfDir, "10-other.conflist"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("nft", "add table ip other").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := Clean(t.Context(), a.ConfDir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"table ip other", "file 10-other.conflist"}, agentObjects(t, a)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNodeWithoutPodCIDRIsSkipped(t *testing.T) {
	a := nodeAgent(t, node("a", nil, "10.0.0.1"), node("b", []string{"192.168.1.0/24"}, "10.0.0.2"))
	if err := a.sync(t.Context()); err == nil || !strings.Contains(err.Error(), "has no Pod range") {
		t.Errorf("got error %v, want one that contains %q", err, "has no Pod range")
	}
	if got := agentObjects(t, a); len(got) > 0 {
		t.Errorf("made %v", got)
	}
}
