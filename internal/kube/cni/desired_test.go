package cni

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
)

var compareAddrs = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})

func node(name string, ranges []string, addresses ...string) *corev1.Node {
	n := &corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: ranges}}
	n.Name = name
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func TestPlan(t *testing.T) {
	route := func(to, via string) Route {
		return Route{To: netip.MustParsePrefix(to), Via: netip.MustParseAddr(via)}
	}
	tests := map[string]struct {
		nodes   []*corev1.Node
		want    Desired
		problem string
	}{
		"a node alone has no routes": {
			nodes: []*corev1.Node{node("a", []string{"192.168.0.0/24"}, "10.0.0.1")},
			want:  Desired{Ranges: prefixes("192.168.0.0/24"), Cluster: prefixes("192.168.0.0/24")},
		},
		"each peer is one route, in a stable order": {
			nodes: []*corev1.Node{
				node("c", []string{"192.168.2.0/24"}, "10.0.0.3"),
				node("a", []string{"192.168.0.0/24"}, "10.0.0.1"),
				node("b", []string{"192.168.1.0/24"}, "10.0.0.2"),
			},
			want: Desired{
				Ranges:  prefixes("192.168.0.0/24"),
				Routes:  []Route{route("192.168.1.0/24", "10.0.0.2"), route("192.168.2.0/24", "10.0.0.3")},
				Cluster: prefixes("192.168.0.0/24", "192.168.1.0/24", "192.168.2.0/24"),
			},
		},
		"two families, each through an address of its own": {
			nodes: []*corev1.Node{
				node("a", []string{"192.168.0.0/24", "fd00::/64"}, "10.0.0.1", "fd01::1"),
				node("b", []string{"192.168.1.0/24", "fd00:0:0:1::/64"}, "fd01::2", "10.0.0.2"),
			},
			want: Desired{
				Ranges:  prefixes("192.168.0.0/24", "fd00::/64"),
				Routes:  []Route{route("192.168.1.0/24", "10.0.0.2"), route("fd00:0:0:1::/64", "fd01::2")},
				Cluster: prefixes("192.168.0.0/24", "192.168.1.0/24", "fd00::/64", "fd00:0:0:1::/64"),
			},
		},
		"a peer without a range is left out quietly": {
			nodes: []*corev1.Node{node("a", []string{"192.168.0.0/24"}, "10.0.0.1"), node("b", nil, "10.0.0.2")},
			want:  Desired{Ranges: prefixes("192.168.0.0/24"), Cluster: prefixes("192.168.0.0/24")},
		},
		"a peer without an address is a problem, and the others are served": {
			nodes: []*corev1.Node{
				node("a", []string{"192.168.0.0/24"}, "10.0.0.1"),
				node("b", []string{"192.168.1.0/24"}),
				node("c", []string{"192.168.2.0/24"}, "10.0.0.3"),
			},
			want: Desired{
				Ranges:  prefixes("192.168.0.0/24"),
				Routes:  []Route{route("192.168.2.0/24", "10.0.0.3")},
				Cluster: prefixes("192.168.0.0/24", "192.168.1.0/24", "192.168.2.0/24"),
			},
			problem: `node "b" has no internal address`,
		},
		"garbage is a problem of the node that has it": {
			nodes:   []*corev1.Node{node("a", []string{"192.168.0.0/24"}, "10.0.0.1"), node("b", []string{"nonsense"}, "10.0.0.2")},
			want:    Desired{Ranges: prefixes("192.168.0.0/24"), Cluster: prefixes("192.168.0.0/24")},
			problem: `parsing Pod range "nonsense" of node "b"`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, problems := Plan("a", tt.nodes)
			if diff := cmp.Diff(tt.want, got, compareAddrs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (tt.problem == "") != (len(problems) == 0) || tt.problem != "" && !strings.Contains(problems[0].Error(), tt.problem) {
				t.Errorf("problems = %v, want %q", problems, tt.problem)
			}
		})
	}
}

func TestDiffRoutes(t *testing.T) {
	route := func(to, via string) Route {
		return Route{To: netip.MustParsePrefix(to), Via: netip.MustParseAddr(via)}
	}
	have := []Route{route("192.168.1.0/24", "10.0.0.2"), route("192.168.2.0/24", "10.0.0.3"), route("192.168.3.0/24", "10.0.0.4")}
	want := []Route{route("192.168.1.0/24", "10.0.0.2"), route("192.168.2.0/24", "10.0.0.9"), route("192.168.4.0/24", "10.0.0.5")}
	stale, missing := diffRoutes(have, want)
	if diff := cmp.Diff([]Route{route("192.168.3.0/24", "10.0.0.4")}, stale, compareAddrs); diff != "" {
		t.Errorf("stale (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Route{route("192.168.2.0/24", "10.0.0.9"), route("192.168.4.0/24", "10.0.0.5")}, missing, compareAddrs); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestConfigurationIsWrittenOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "net.d")
	for _, step := range []struct {
		ranges []netip.Prefix
		want   bool
	}{
		{prefixes("192.168.0.0/24"), true},
		{prefixes("192.168.0.0/24"), false},
		{prefixes("192.168.7.0/24", "fd00::/64"), true},
	} {
		changed, err := writeConflist(dir, step.ranges)
		if err != nil || changed != step.want {
			t.Errorf("ranges %v: changed = %v, %v; want %v", step.ranges, changed, err, step.want)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, conflistName))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"subnet": "192.168.7.0/24"`, `"subnet": "fd00::/64"`, `"dst": "::/0"`, `"type": "ptp"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the configuration lacks %s:\n%s", want, data)
		}
	}
}
