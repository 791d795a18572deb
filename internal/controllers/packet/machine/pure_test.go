package machine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/metal/client"
)

func TestPlace(t *testing.T) {
	cluster := placement{metro: "da", facility: "da11"}
	for _, tc := range []struct {
		name    string
		machine placement
		domain  string
		cluster placement
		want    placement
	}{
		{name: "the cluster's metro wins over its facility", cluster: cluster, want: placement{metro: "da"}},
		{name: "a facility is used where there is no metro", cluster: placement{facility: "ewr1"}, want: placement{facility: "ewr1"}},
		{name: "the machine's facility replaces both", machine: placement{facility: "sv15"}, cluster: cluster, want: placement{facility: "sv15"}},
		{name: "the machine's metro replaces both", machine: placement{metro: "sv"}, domain: "ny", cluster: cluster, want: placement{metro: "sv"}},
		{name: "the failure domain is a metro", domain: "ny", cluster: cluster, want: placement{metro: "ny"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := place(tc.machine, tc.domain, tc.cluster); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestReservations(t *testing.T) {
	for field, want := range map[string][]string{
		"":                {""},
		"a":               {"a"},
		" a , b,":         {"a", "b"},
		"Next-Available ": {"next-available"},
	} {
		if diff := cmp.Diff(want, reservations(field)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", field, diff)
		}
	}
}

func TestChoose(t *testing.T) {
	d := func(id, state, at string) client.Device { return client.Device{ID: id, State: state, CreatedAt: at} }
	for _, tc := range []struct {
		name     string
		devices  []client.Device
		recorded string
		keep     string
		extra    int
	}{
		{name: "there is none"},
		{name: "the only one", devices: []client.Device{d("a", "queued", "1")}, keep: "a"},
		{name: "the oldest of two", devices: []client.Device{d("a", "queued", "1"), d("b", "active", "2")}, keep: "a", extra: 1},
		{name: "the recorded one, though younger", devices: []client.Device{d("a", "active", "1"), d("b", "queued", "2")}, recorded: "b", keep: "b", extra: 1},
		{name: "one on its way out does not count", devices: []client.Device{d("a", "deprovisioning", "1"), d("b", "queued", "2")}, keep: "b"},
		{name: "all on their way out", devices: []client.Device{d("a", "deprovisioning", "1"), d("b", "deleted", "2")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			keep, extra := choose(tc.devices, tc.recorded)
			got := ""
			if keep != nil {
				got = keep.ID
			}
			if got != tc.keep || len(extra) != tc.extra {
				t.Errorf("keeps %q and removes %d, want %q and %d", got, len(extra), tc.keep, tc.extra)
			}
		})
	}
}

func TestProvisioningPoll(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{0: time.Second, 30 * time.Second: 2 * time.Second, time.Hour: 10 * time.Second} {
		if got := provisioningPoll(age); got != want {
			t.Errorf("after %s: %s, want %s", age, got, want)
		}
	}
}

func TestPrepareNode(t *testing.T) {
	device := &client.Device{ID: "d1", Metro: &client.Location{Code: "da"}, Plan: &client.Plan{Slug: "c3.small.x86"}}
	for _, tc := range []struct {
		name     string
		node     corev1.Node
		provider string
		taints   int
		region   string
	}{
		{name: "a bare node gets all", provider: "equinixmetal://d1", region: "da"},
		{name: "what the userdata set stays", node: corev1.Node{Spec: corev1.NodeSpec{ProviderID: "equinixmetal://own"}}, provider: "equinixmetal://own", region: "da"},
		{
			name: "only the taint of an uninitialized node goes",
			node: corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: uninitialized}, {Key: "mine"}}}}, provider: "equinixmetal://d1", taints: 1, region: "da",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			prepare(&tc.node, device)
			if tc.node.Spec.ProviderID != tc.provider || len(tc.node.Spec.Taints) != tc.taints || tc.node.Labels[corev1.LabelTopologyRegion] != tc.region {
				t.Errorf("got %+v %v", tc.node.Spec, tc.node.Labels)
			}
		})
	}
}

func TestRunsOn(t *testing.T) {
	id := "equinixmetal://d1"
	machine := &infrav1.PacketMachine{Spec: infrav1.PacketMachineSpec{ProviderID: &id}}
	device := &client.Device{ID: "d1", Hostname: "host", IPAddresses: []client.IPAssignment{{Address: "10.0.0.5", Management: true}, {Address: "203.0.113.1"}}}
	node := func(name, provider, address string) *corev1.Node {
		n := &corev1.Node{Spec: corev1.NodeSpec{ProviderID: provider}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: address}}}}
		n.Name = name
		return n
	}
	for _, tc := range []struct {
		name string
		node *corev1.Node
		want bool
	}{
		{name: "same provider id", node: node("x", id, ""), want: true},
		{name: "another provider id, same name", node: node("host", "equinixmetal://d2", "")},
		{name: "no provider id, same name", node: node("host", "", ""), want: true},
		{name: "no provider id, same address", node: node("x", "", "10.0.0.5"), want: true},
		{name: "no provider id, only the elastic address in common", node: node("x", "", "203.0.113.1")},
		{name: "nothing in common", node: node("x", "", "10.0.0.6")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := runsOn(tc.node, machine, device); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
