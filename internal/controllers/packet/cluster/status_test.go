package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/tags"
)

func TestNetworkCondition(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{Type: infrav1.NetworkInfrastructureReady, Status: status, Reason: reason, Message: message}
	}
	silent := &reconcile.Wait{Reason: infrav1.APIUnavailableReason, Message: "Reserving an address failed: no response in time"}
	for name, tt := range map[string]struct {
		facts facts
		want  *metav1.Condition
	}{
		"nothing new":                          {facts{provisioned: true}, nil},
		"an address":                           {facts{address: &client.IPReservation{}}, condition(metav1.ConditionTrue, infrav1.AddressReservedReason, "")},
		"an endpoint of the user":              {facts{external: true}, condition(metav1.ConditionTrue, infrav1.ExternalEndpointReason, "The endpoint is spec.controlPlaneEndpoint, which Drover does not manage")},
		"no response before the first address": {facts{wait: silent}, condition(metav1.ConditionFalse, silent.Reason, silent.Message)},
		"no response afterwards":               {facts{wait: silent, provisioned: true}, condition(metav1.ConditionUnknown, silent.Reason, silent.Message)},
		"a quota, although it was ready": {
			facts{wait: &reconcile.Wait{Reason: infrav1.QuotaExceededReason, Message: "M"}, provisioned: true},
			condition(metav1.ConditionFalse, infrav1.QuotaExceededReason, "M"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, networkCondition(tt.facts)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEndpointKeepsTheHolderOfTheSameAddress(t *testing.T) {
	old := &infrav1.EndpointStatus{Address: "192.0.2.1", Machine: "cp-1", DeviceID: "d"}
	same := endpoint(old, &client.IPReservation{ID: "r", Address: "192.0.2.1"}, true)
	if diff := cmp.Diff(&infrav1.EndpointStatus{Address: "192.0.2.1", ReservationID: "r", Owned: true, Machine: "cp-1", DeviceID: "d"}, same); diff != "" {
		t.Errorf("same address (-want +got):\n%s", diff)
	}
	other := endpoint(old, &client.IPReservation{ID: "s", Address: "192.0.2.2"}, false)
	if diff := cmp.Diff(&infrav1.EndpointStatus{Address: "192.0.2.2", ReservationID: "s"}, other); diff != "" {
		t.Errorf("other address (-want +got):\n%s", diff)
	}
}

func TestFailureDomains(t *testing.T) {
	got := failureDomains([]infrav1.PacketFailureDomain{{Metro: "da", ControlPlane: ptr.To(true)}, {Metro: "ny"}})
	want := []clusterv1.FailureDomain{{Name: "da", ControlPlane: ptr.To(true)}, {Name: "ny", ControlPlane: ptr.To(false)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failure domains (-want +got):\n%s", diff)
	}
}

func TestChooseAddress(t *testing.T) {
	me := identity{Endpoint: tags.Endpoint{Namespace: "farm", Cluster: "herd"}}
	address := func(id, host string, tagged []string) client.IPReservation {
		return client.IPReservation{ID: id, Address: host, CreatedAt: id, Tags: tagged}
	}
	own, former := me.Encode(), me.Encode()[:1]
	recorded := identity{Endpoint: me.Endpoint, host: "192.0.2.2", reservation: "2"}
	for name, tt := range map[string]struct {
		identity identity
		all      []client.IPReservation
		taken    bool
		want     string // address, "" for none
		owned    bool
		surplus  int
		problem  string
	}{
		"no address":                        {identity: me},
		"its own":                           {identity: me, all: []client.IPReservation{address("1", "192.0.2.1", own)}, want: "192.0.2.1", owned: true},
		"the oldest of several":             {identity: me, all: []client.IPReservation{address("3", "192.0.2.3", own), address("1", "192.0.2.1", own)}, want: "192.0.2.1", owned: true, surplus: 1},
		"the one in use of several":         {identity: recorded, all: []client.IPReservation{address("1", "192.0.2.1", own), address("2", "192.0.2.2", own)}, want: "192.0.2.2", owned: true, surplus: 1},
		"an untagged one that is in use":    {identity: recorded, all: []client.IPReservation{address("2", "192.0.2.2", nil)}, want: "192.0.2.2"},
		"one of another namespace":          {identity: recorded, all: []client.IPReservation{address("2", "192.0.2.2", tags.Endpoint{Namespace: "barn", Cluster: "herd"}.Encode())}, problem: "Address 192.0.2.2 belongs to another cluster"},
		"one of another cluster":            {identity: recorded, all: []client.IPReservation{address("2", "192.0.2.2", tags.Endpoint{Namespace: "farm", Cluster: "flock"}.Encode())}, problem: "Address 192.0.2.2 belongs to another cluster"},
		"one of the former provider":        {identity: me, all: []client.IPReservation{address("1", "192.0.2.1", former)}, want: "192.0.2.1", owned: true},
		"that may be another cluster's":     {identity: me, all: []client.IPReservation{address("1", "192.0.2.1", former)}, taken: true},
		"several of the former provider":    {identity: me, all: []client.IPReservation{address("1", "192.0.2.1", former), address("2", "192.0.2.2", former)}, problem: "Several addresses have the tag cluster-api-provider-packet:cluster-id:herd: set spec.controlPlaneEndpoint to the cluster's address"},
		"an endpoint that no longer exists": {identity: recorded, all: []client.IPReservation{address("1", "192.0.2.1", former)}},
	} {
		t.Run(name, func(t *testing.T) {
			v := tt.identity.choose(tt.all, func(string) bool { return tt.taken })
			got := ""
			if v.address != nil {
				got = v.address.Address
			}
			if got != tt.want || v.owned != tt.owned || len(v.surplus) != tt.surplus || v.problem != tt.problem {
				t.Errorf("chose %q, owned %t, %d surplus, problem %q", got, v.owned, len(v.surplus), v.problem)
			}
		})
	}
}
