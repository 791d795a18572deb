package vip

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/packettest"
)

func TestAttend(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tt := range map[string]struct {
		agents   agents
		next     time.Duration
		attended bool
	}{
		"no Lease":                                 {agents{asked: now}, 0, false},
		"a Lease that may be renewed":              {agents{version: "1", found: ago(time.Second)}, checkRenewal, true},
		"one that was never renewed":               {agents{version: "1", found: ago(leaseDoubt)}, 0, false},
		"one that is renewed":                      {agents{version: "2", found: ago(time.Hour), renewed: ago(time.Second)}, checkAgents, true},
		"an API server that does not answer":       {agents{version: "2", found: ago(time.Hour), renewed: ago(15 * time.Second), failed: true}, checkFailing, true},
		"and has not for long":                     {agents{version: "2", found: ago(time.Hour), renewed: ago(leaseTrust), failed: true}, 0, false},
		"one that was renewed before, but not now": {agents{version: "2", found: ago(time.Hour), renewed: ago(leaseTrust)}, 0, false},
		"one from the future of a clock":           {agents{version: "2", found: ago(-time.Hour), renewed: ago(-time.Hour)}, 0, false},
	} {
		d, attended := tt.agents.attend(now)
		if attended != tt.attended || d.next != tt.next || d.to != "" {
			t.Errorf("%s: decision %+v, attended %t, want next %s, %t", name, d, attended, tt.next, tt.attended)
		}
	}
}

// fakeLeases is the Lease of a cluster.
type fakeLeases struct {
	machine string
	version int
	// frozen means that nobody renews it.
	frozen bool
	err    error
	asked  int
}

func (f *fakeLeases) Lease(context.Context, ctrlclient.ObjectKey) (Lease, error) {
	f.asked++
	if f.err != nil || f.machine == "" {
		return Lease{}, f.err
	}
	if !f.frozen {
		f.version++
	}
	return Lease{Machine: f.machine, Version: strconv.Itoa(f.version)}, nil
}

// newLeaseWorld is newWorld with a cluster that is initialized.
func newLeaseWorld(t *testing.T, n int) (*world, *fakeLeases) {
	t.Helper()
	w, leases := newWorld(t, n), &fakeLeases{}
	w.Leases = leases
	c := &clusterv1.Cluster{}
	w.Read(t, "c", c)
	conditions.Set(c, metav1.Condition{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: "Initialized"})
	if err := w.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return w, leases
}

func TestMachinesThatMoveTheAddressAreFollowed(t *testing.T) {
	w, leases := newLeaseWorld(t, 3)
	w.reconcile(t)
	if w.holder(t) != "cp0" {
		t.Fatalf("holder %q, want that of a cluster without Lease", w.holder(t))
	}
	leases.machine = "cp0"
	w.prober.dead = []string{"10.9.0.0"} // The manager can't reach the machine, others can.
	for _, machine := range []string{"cp0", "cp2"} {
		leases.machine = machine
		for range 4 {
			w.Pass(checkNoLease)
			w.reconcile(t)
			w.Pass(checkRenewal)
			w.reconcile(t)
		}
		c, _ := w.reconcile(t)
		if c.Status.Endpoint.Machine != machine || c.Status.Endpoint.MovedAt == nil {
			t.Errorf("status %+v, want machine %q", c.Status.Endpoint, machine)
		}
		if got, want := packettest.Condition(c, infrav1.EndpointServed), "True EndpointHealthy: Machine \""+machine+"\" holds the address"; got != want {
			t.Errorf("EndpointServed is %q, want %q", got, want)
		}
	}
	if w.holder(t) != "cp0" {
		t.Errorf("the manager assigned the address to %q", w.holder(t))
	}
}

func TestManagerStepsInWhenTheMachinesFail(t *testing.T) {
	w, leases := newLeaseWorld(t, 2)
	leases.machine = "cp0"
	w.reconcile(t)
	w.Pass(checkRenewal)
	w.reconcile(t)
	leases.err, w.prober.dead = errors.New("timeout"), []string{"10.9.0.0"}
	began := w.World.Clock.Now()
	for w.holder(t) != "cp1" {
		_, result := w.reconcile(t)
		w.Pass(result.RequeueAfter)
		if w.World.Clock.Now().Sub(began) > time.Minute {
			t.Fatalf("holder %q", w.holder(t))
		}
	}
	if passed := w.World.Clock.Now().Sub(began); passed < leaseTrust {
		t.Errorf("the manager moved the address after %s, want it to give the machines %s", passed, leaseTrust)
	}
}

func TestAbandonedLeaseDoesNotCount(t *testing.T) {
	w, leases := newLeaseWorld(t, 2)
	leases.machine, leases.frozen, leases.version = "cp0", true, 7
	w.prober.dead = []string{"10.9.0.0"}
	for range 10 {
		w.Pass(leaseDoubt)
		w.reconcile(t)
	}
	if w.holder(t) != "cp1" {
		t.Errorf("holder %q: a Lease that nobody renews kept the address on a dead machine", w.holder(t))
	}
}

func TestMissingLeaseIsRarelyAskedFor(t *testing.T) {
	w, leases := newLeaseWorld(t, 2)
	for range 10 {
		w.reconcile(t)
		w.Pass(checkHealthy)
	}
	if leases.asked != 1 {
		t.Errorf("asked %d times in half a minute", leases.asked)
	}
}

// pause pauses the cluster.
func (w *world) pause(t *testing.T) {
	t.Helper()
	c := &clusterv1.Cluster{}
	w.Read(t, "c", c)
	c.Spec.Paused = ptr.To(true)
	if err := w.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// TestMovedClusterKeepsItsEndpoint deletes the objects of the machine that has the address, as a
// move to another management plane does.
func TestMovedClusterKeepsItsEndpoint(t *testing.T) {
	w := newWorld(t, 2)
	w.reconcile(t)
	holder := w.holder(t)
	w.pause(t)
	machine := &clusterv1.Machine{}
	w.Read(t, "m-"+holder, machine)
	machine.Finalizers = []string{"example.com/held"}
	if err := errors.Join(w.Update(t.Context(), machine), w.Delete(t.Context(), machine)); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t)
	w.Read(t, "m-"+holder, machine)
	machine.Finalizers = nil
	if err := w.Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		w.Pass(time.Minute)
		w.reconcile(t)
	}
	if now := w.holder(t); now != holder {
		t.Errorf("holder %q: the cluster that is being moved moved its endpoint from %q", now, holder)
	}
}

func TestPausedClusterKeepsItsEndpoint(t *testing.T) {
	w := newWorld(t, 2)
	w.reconcile(t)
	w.pause(t)
	w.prober.dead = []string{"10.9.0.0"}
	for range 4 {
		w.Pass(time.Minute)
		w.reconcile(t)
	}
	if w.holder(t) != "cp1" {
		t.Errorf("holder %q: a paused cluster lost its endpoint with a machine", w.holder(t))
	}
}
