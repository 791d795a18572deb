package vip

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/client"
)

func TestOnlyTagsAllowTakingAnAddressFromOthers(t *testing.T) {
	s := &scope{
		packetCluster: &infrav1.PacketCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}},
		cluster:       &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}},
		machines:      map[string]*infrav1.PacketMachine{"own": {}},
	}
	const clusterTag, namespaceTag = "cluster-api-provider-packet:cluster-id:c", "capp:namespace:ns"
	for name, tt := range map[string]struct {
		tags    []string
		holders []string
		taken   bool
	}{
		"nobody holds it":                         {nil, nil, true},
		"a machine of the cluster holds it":       {nil, []string{"own"}, true},
		"another device holds it":                 {nil, []string{"foreign"}, false},
		"a machine and another device hold it":    {nil, []string{"own", "foreign"}, false},
		"a device that is not known holds it":     {nil, []string{""}, false},
		"another device, with foreign tags":       {[]string{"dns"}, []string{"foreign"}, false},
		"another device, of another cluster":      {[]string{"cluster-api-provider-packet:cluster-id:d", namespaceTag}, []string{"foreign"}, false},
		"another device, of a namesake":           {[]string{clusterTag, "capp:namespace:other"}, []string{"foreign"}, false},
		"another device, with both tags":          {[]string{clusterTag, namespaceTag}, []string{"foreign"}, true},
		"another device, of the former provider":  {[]string{clusterTag}, []string{"foreign"}, false},
		"a machine, of the former provider":       {[]string{clusterTag}, []string{"own"}, true},
		"another device, with only the namespace": {[]string{namespaceTag}, []string{"foreign"}, false},
	} {
		var assignments []client.IPAssignment
		for _, device := range tt.holders {
			assignments = append(assignments, client.IPAssignment{AssignedTo: &client.Hyperref{Href: "/devices/" + device}})
		}
		err := s.mayTake(&client.IPReservation{Address: "198.18.0.9", Tags: tt.tags}, assignments)
		if (err == nil) != tt.taken {
			t.Errorf("%s: got error %v, want success: %t", name, err, tt.taken)
			continue
		}
		if wait := reconcile.AsWait(err); err != nil && (wait == nil || wait.Reason != infrav1.AddressInUseReason || strings.Contains(wait.Message, "foreign")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
