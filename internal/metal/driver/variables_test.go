package driver

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVariables(t *testing.T) {
	m := Machine{
		Hostname: "box", Plan: "c3.small.x86", Instance: InstanceData{InstanceID: "id", LocalHostname: "box", Region: "da"},
		Addresses: []Address{{IP: netip.MustParseAddr("198.18.0.2"), Public: true}, {IP: netip.MustParseAddr("10.128.0.2")}},
	}
	got := m.Variables()["ds"].(map[string]any)["meta_data"].(map[string]any)
	want := map[string]any{"instance_id": "id", "public_ipv4": "198.18.0.2", "local_ipv4": "10.128.0.2", "metro": "da", "plan": "c3.small.x86"}
	for key, value := range want {
		if diff := cmp.Diff(value, got[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}
