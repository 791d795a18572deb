package capacity

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/quota"
	"github.com/drover-dev/drover/internal/model/spec"
)

// quota limits the namespace of the Clusters.
func (w *world) quota(key, most string) {
	w.Helper()
	w.planner.Quotas = &Quotas{Live: w, Configs: w}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: strings.ReplaceAll(key, "/", "-")}}
	q.Spec.Hard = corev1.ResourceList{corev1.ResourceName(key): resource.MustParse(most)}
	w.must(w.Create(w.Context(), q))
}

func TestQuotaOfANamespace(t *testing.T) {
	w := newWorld(t, 100)
	w.quota(quota.Machines, "5")
	w.quota(quota.CPUs, "9")
	w.cluster("first", 3)
	exceeded := func(was, is *spec.Config) string {
		t.Helper()
		got, err := w.planner.Quotas.Exceeded(t.Context(), was, is, nil)
		w.must(err)
		return got
	}
	of := func(name, namespace string, machines int) *spec.Config {
		c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		c.Spec.ControlPlaneConfiguration.Count = machines
		return &spec.Config{Cluster: c}
	}
	if got := exceeded(nil, of("new", "team", 3)); got != "exceeded quota of the namespace: machines: 6 of 5, cpus: 12 of 9" {
		t.Errorf("a new cluster: %q", got)
	}
	if got := exceeded(nil, of("new", "team", 1)); got != "" {
		t.Errorf("a cluster that fits: %q", got)
	}
	if got := exceeded(nil, of("new", "other", 9)); got != "" {
		t.Errorf("a cluster of another namespace: %q", got)
	}
	if got := exceeded(of("first", "team", 3), of("first", "team", 5)); got != "exceeded quota of the namespace: cpus: 10 of 9" {
		t.Errorf("a cluster that grows: %q", got)
	}
	if got := exceeded(of("first", "team", 9), of("first", "team", 7)); got != "" {
		t.Errorf("a cluster that shrinks: %q", got)
	}
}

// TestMachineTypesCountForTheQuota replaces a small plan with a large one.
func TestMachineTypesCountForTheQuota(t *testing.T) {
	w := newWorld(t, 100)
	w.quota(quota.CPUs, "8")
	w.must(w.Create(t.Context(), &anywherev1.PacketDatacenterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "dc"}}))
	machine := &anywherev1.PacketMachineConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "m"}}
	machine.Spec.MachineType = "c3.small.x86"
	w.must(w.Create(t.Context(), machine))
	c := w.cluster("one", 3).Cluster
	c.Spec.DatacenterRef = anywherev1.Ref{Kind: anywherev1.PacketDatacenterConfigKind, Name: "dc"}
	c.Spec.ControlPlaneConfiguration.MachineGroupRef = &anywherev1.Ref{Kind: anywherev1.PacketMachineConfigKind, Name: "m"}
	w.must(w.Update(t.Context(), c))
	for plan, want := range map[string]string{"m3.small.x86": "", "c3.medium.x86": "exceeded quota of the namespace: cpus: 12 of 8"} {
		larger := machine.DeepCopy()
		larger.Spec.MachineType = plan
		got, err := w.planner.Quotas.OfMachineConfig(t.Context(), larger)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", plan, got, err)
		}
	}
}

// TestOfClustersBeyondTheQuotaTheOldestContinues has clusters that passed admission together.
func TestOfClustersBeyondTheQuotaTheOldestContinues(t *testing.T) {
	w := newWorld(t, 100)
	w.quota(quota.Clusters, "1")
	old, young := w.cluster("old", 1), w.cluster("young", 1)
	if got := w.waits(young); got == nil || got.Reason() != anywherev1.WaitingForQuotaReason || got.Message() != "Waiting for quota: exceeded quota of the namespace: clusters: 2 of 1" {
		t.Errorf("the younger one: %+v", got)
	}
	w.expect(old, false)
	w.apply(old)
	w.must(w.Delete(t.Context(), old.Cluster))
	w.expect(young, false)
	w.apply(young)
	older := w.cluster("older", 1)
	older.Cluster.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
	w.must(w.Update(t.Context(), older.Cluster))
	w.expect(older, true) // The younger one has its machines.
}
