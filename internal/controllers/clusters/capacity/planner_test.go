package capacity

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/model/owner"
	"github.com/drover-dev/drover/internal/model/spec"
)

func (r *room) CanHave(_ context.Context, demands []client.Demand) ([]bool, error) {
	r.requests++
	return r.answer(demands), r.fails
}

// world is a planner with Clusters of local machines.
type world struct {
	*testing.T
	ctrlclient.Client

	planner *Planner
	room    *room
	clock   *clocktesting.FakeClock
	age     int
}

func newWorld(t *testing.T, free int) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{anywherev1.AddToScheme, infrav1.AddToScheme, clusterv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{T: t, Client: fake.NewClientBuilder().WithScheme(scheme).Build(), room: &room{free: free}, clock: clocktesting.NewFakeClock(noon)}
	w.planner = &Planner{Client: w, Clock: w.clock, API: func(context.Context, string) (API, error) { return w.room, nil }}
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// cluster creates a Cluster that is younger than those before.
func (w *world) cluster(name string, machines int) *spec.Config {
	w.Helper()
	w.age++
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(w.age) * time.Minute))}}
	c.Spec.ControlPlaneConfiguration.Count = machines
	w.must(w.Create(w.Context(), c))
	return &spec.Config{Cluster: c}
}

// apply creates what the controller creates for a Cluster that may continue.
func (w *world) apply(c *spec.Config) {
	w.Helper()
	made := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: c.Cluster.Name}}
	owner.Mark(c.Cluster, made)
	w.must(w.Create(w.Context(), made))
}

// provision creates a machine with a device, which takes room.
func (w *world) provision(c *spec.Config, name string) {
	w.Helper()
	m := &infrav1.PacketMachine{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: c.Cluster.Name}}}
	m.Spec.MachineType, m.Spec.ProviderID = "local.small", ptr.To("equinixmetal://"+name)
	w.must(w.Create(w.Context(), m))
	w.room.free--
}

// waits asks for a Cluster.
func (w *world) waits(c *spec.Config) *Shortage {
	w.Helper()
	shortage, err := w.planner.Admit(w.Context(), c)
	w.must(err)
	return shortage
}

func (w *world) expect(c *spec.Config, waits bool) {
	w.Helper()
	if got := w.waits(c); (got != nil) != waits {
		w.Errorf("%s waits: %+v, want %t", c.Cluster.Name, got, waits)
	}
}

func TestOfTwoClustersTheOlderGetsTheLastMachines(t *testing.T) {
	w := newWorld(t, 3)
	old, young := w.cluster("old", 2), w.cluster("young", 2)
	w.expect(young, true) // It asks first, and waits all the same.
	w.expect(old, false)
	w.apply(old)
	w.provision(old, "old-1")
	w.expect(young, true) // One machine is free, one more is reserved.
	w.provision(old, "old-2")
	w.expect(young, true)
	w.must(w.Delete(w.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: "old"}}))
	w.must(w.Delete(w.Context(), old.Cluster))
	w.must(w.DeleteAllOf(w.Context(), &infrav1.PacketMachine{}, ctrlclient.InNamespace(anywherev1.SystemNamespace)))
	w.room.free = 3
	w.expect(young, false)
}

func TestGrantsHoldBeforeTheCacheHasTheObjects(t *testing.T) {
	w := newWorld(t, 2)
	first := w.cluster("first", 2)
	w.expect(first, false)
	older := w.cluster("older", 2)
	older.Cluster.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour)) // of a clock that is behind
	w.must(w.Update(w.Context(), older.Cluster))
	w.expect(older, true)
}

func TestWaitingClustersShareOneRequest(t *testing.T) {
	w := newWorld(t, 0)
	var all []*spec.Config
	for _, name := range []string{"a", "b", "c", "d"} {
		all = append(all, w.cluster(name, 1))
	}
	w.expect(all[0], true)
	before := w.room.requests
	for _, c := range all {
		w.expect(c, true)
	}
	if w.room.requests != before {
		t.Errorf("%d requests for what was just answered", w.room.requests-before)
	}
	w.clock.Step(fresh)
	w.room.free = 4
	for _, c := range all {
		w.expect(c, false)
	}
	if w.room.requests != before+1 {
		t.Errorf("%d requests for 4 clusters that no longer wait", w.room.requests-before)
	}
}

func TestClusterThatIsTooLargeHoldsNobodyUp(t *testing.T) {
	w := newWorld(t, 3)
	running := w.cluster("running", 1)
	w.apply(running)
	w.provision(running, "running-1")
	huge, fits, second := w.cluster("huge", 4), w.cluster("fits", 2), w.cluster("second", 1)
	w.expect(fits, false)
	w.expect(second, true)
	if got := w.waits(huge); got == nil || !got.TooLarge {
		t.Errorf("a cluster of 4 on 3 machines: %+v", got)
	}
	if got := w.waits(second); got == nil || got.Behind {
		t.Errorf("a cluster behind one that is too large: %+v", got)
	}
}

func TestClusterThatIsNotTooLargeIsWaitedFor(t *testing.T) {
	w := newWorld(t, 3)
	running := w.cluster("running", 1)
	w.apply(running)
	w.provision(running, "running-1")
	large, small := w.cluster("large", 3), w.cluster("small", 1)
	w.expect(large, true)
	if got := w.waits(small); got == nil || !got.Behind {
		t.Errorf("a small cluster overtakes a large one: %+v", got)
	}
}

func TestClustersThatDoNotContinueHoldNobodyUp(t *testing.T) {
	for name, change := range map[string]func(*anywherev1.Cluster){
		"paused": func(c *anywherev1.Cluster) { c.Annotations = map[string]string{anywherev1.PausedAnnotation: "true"} },
		"failed": func(c *anywherev1.Cluster) { c.Status.FailureReason = ptr.To(anywherev1.ClusterInvalidReason) },
		"of other machines": func(c *anywherev1.Cluster) {
			c.Spec.DatacenterRef = anywherev1.Ref{Kind: anywherev1.PacketDatacenterConfigKind, Name: "elsewhere"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			w.must(w.Create(w.Context(), &anywherev1.PacketDatacenterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "elsewhere"}}))
			first := w.cluster("first", 2)
			change(first.Cluster)
			w.must(w.Update(w.Context(), first.Cluster))
			w.expect(w.cluster("second", 2), false)
		})
	}
}

// TestClusterThatFailedBeforeIsAdmitted covers a Cluster that was created before its configs: its
// status still says so when it asks for machines.
func TestClusterThatFailedBeforeIsAdmitted(t *testing.T) {
	w := newWorld(t, 1)
	c := w.cluster("repaired", 2)
	c.Cluster.Status.FailureReason = ptr.To(anywherev1.ClusterInvalidReason)
	w.must(w.Update(w.Context(), c.Cluster))
	if got := w.waits(c); got == nil || len(got.Needs) != 1 {
		t.Errorf("without room, it waits: %+v", got)
	}
	w.room.free = 2
	w.clock.Step(fresh)
	w.expect(c, false)
}

func TestCheckCountsReservations(t *testing.T) {
	w := newWorld(t, 5)
	running, waiting := w.cluster("running", 2), w.cluster("waiting", 9)
	w.apply(running)
	w.expect(waiting, true)
	for name, tt := range map[string]struct {
		machines int
		isNew    bool
		missing  int
	}{
		"a change that fits beside what is reserved": {3, false, 0},
		"a change that does not":                     {4, false, 4},
		"nothing":                                    {0, false, 0},
		"a new one passes one that is too large":     {3, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			needs := smalls(tt.machines)
			if tt.machines == 0 {
				needs = nil
			}
			got, err := w.planner.Check(t.Context(), anywherev1.LocalCredentials, needs, tt.isNew)
			if err != nil || len(got) != min(tt.missing, 1) {
				t.Errorf("missing %v, %v", got, err)
			}
		})
	}
	before := w.room.requests
	if _, err := w.planner.Check(t.Context(), anywherev1.LocalCredentials, nil, false); err != nil || w.room.requests != before {
		t.Errorf("a change without machines sends a request, or fails: %v", err)
	}
}

func TestErrorsOfTheServiceAreReturned(t *testing.T) {
	w := newWorld(t, 5)
	w.room.fails = errors.New("down")
	if _, err := w.planner.Admit(t.Context(), w.cluster("a", 1)); !errors.Is(err, w.room.fails) {
		t.Errorf("got %v", err)
	}
	w.room.fails = nil
	w.expect(&spec.Config{Cluster: w.cluster("b", 1).Cluster}, false)
}
