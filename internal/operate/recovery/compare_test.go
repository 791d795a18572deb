package recovery

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/metal/tags"
	"github.com/drover-dev/drover/internal/model/backup/objects"
)

func encode(t *testing.T, kind schema.GroupVersionKind, o any) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	return u
}

// backupOf returns a backup with one workload cluster, whose machines are given as name to device.
func backupOf(t *testing.T, name string, deleted *metav1.Time, machines map[string]string) objects.Set {
	t.Helper()
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "eksa-system", Name: name, DeletionTimestamp: deleted}}
	set := objects.Set{encode(t, clusterv1.GroupVersion.WithKind("Cluster"), c)}
	for machine, device := range machines {
		m := &infrav1.PacketMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "eksa-system", Name: machine, Labels: map[string]string{clusterv1.ClusterNameLabel: name}}}
		if device != "" {
			m.Spec.ProviderID = ptr.To(providerPrefix + device)
		}
		set = append(set, encode(t, infrav1.GroupVersion.WithKind("PacketMachine"), m))
	}
	return set
}

func device(id, cluster, machine string) Device {
	d := tags.Device{Machine: tags.Machine{Namespace: "eksa-system", Cluster: cluster, Name: machine, Claim: "c"}, Role: "node"}
	return Device{ID: id, Hostname: machine, Tags: d.Encode()}
}

func TestCompareDecidesByMachines(t *testing.T) {
	two := map[string]string{"dev-a": "1", "dev-b": "2"}
	for name, tt := range map[string]struct {
		machines map[string]string
		deleted  *metav1.Time
		devices  []Device
		want     []Cluster
	}{
		"the same machines": {two, nil, []Device{device("1", "dev", "dev-a"), device("2", "dev", "dev-b")}, []Cluster{{Name: "dev", Verdict: Intact}}},
		"one was replaced": {two, nil, []Device{device("1", "dev", "dev-a"), device("3", "dev", "dev-c")}, []Cluster{
			{Name: "dev", Verdict: Changed, Missing: []Machine{{"dev-b", "2"}}, Added: []Machine{{"dev-c", "3"}}},
		}},
		"one was added": {two, nil, []Device{device("1", "dev", "dev-a"), device("2", "dev", "dev-b"), device("3", "dev", "dev-c")}, []Cluster{
			{Name: "dev", Verdict: Changed, Added: []Machine{{"dev-c", "3"}}},
		}},
		"one of the same name was reinstalled as another device": {two, nil, []Device{device("1", "dev", "dev-a"), device("3", "dev", "dev-b")}, []Cluster{
			{Name: "dev", Verdict: Changed, Missing: []Machine{{"dev-b", "2"}}, Added: []Machine{{"dev-b", "3"}}},
		}},
		"all are gone": {two, nil, nil, []Cluster{{Name: "dev", Verdict: Gone, Missing: []Machine{{"dev-a", "1"}, {"dev-b", "2"}}}}},
		"it was being deleted": {two, ptr.To(metav1.Now()), []Device{device("1", "dev", "dev-a")}, []Cluster{
			{Name: "dev", Verdict: Deleted, Missing: []Machine{{"dev-b", "2"}}, Added: nil},
		}},
		"one was ordered right before the backup": {
			map[string]string{"dev-a": "1", "dev-b": ""},
			nil,
			[]Device{device("1", "dev", "dev-a"), device("2", "dev", "dev-b")},
			[]Cluster{{Name: "dev", Verdict: Intact}},
		},
		"one was to be ordered right after the backup": {
			map[string]string{"dev-a": "1", "dev-b": ""},
			nil,
			[]Device{device("1", "dev", "dev-a")},
			[]Cluster{{Name: "dev", Verdict: Intact}},
		},
		"it had no machines yet": {nil, nil, nil, []Cluster{{Name: "dev", Verdict: Intact}}},
		"another cluster is newer": {two, nil, []Device{device("1", "dev", "dev-a"), device("2", "dev", "dev-b"), device("9", "new", "new-a")}, []Cluster{
			{Name: "dev", Verdict: Intact}, {Name: "new", Verdict: Unknown, Added: []Machine{{"new-a", "9"}}},
		}},
		"machines of the manager and of nobody": {two, nil, []Device{
			device("1", "dev", "dev-a"), device("2", "dev", "dev-b"), device("8", "mgmt", "mgmt-a"), {ID: "7", Hostname: "theirs"},
		}, []Cluster{{Name: "dev", Verdict: Intact}}},
	} {
		got, err := Compare(backupOf(t, "dev", tt.deleted, tt.machines), "mgmt", tt.devices)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			sortMachines(got[i].Missing)
			if len(got[i].Added) == 0 {
				got[i].Added = nil
			}
			if got[i].Message() == "" {
				t.Errorf("%s: no message", name)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func sortMachines(all []Machine) {
	for i := range all {
		for j := i; j > 0 && all[j].Name < all[j-1].Name; j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	c := Cluster{Name: "dev", Verdict: Changed}
	for range 100 {
		c.Missing = append(c.Missing, Machine{Name: strings.Repeat("m", 60), Device: "d"})
	}
	if got := c.Message(); len(got) > 600 || !strings.Contains(got, "95 more") {
		t.Errorf("%d characters: %s", len(got), got)
	}
}
