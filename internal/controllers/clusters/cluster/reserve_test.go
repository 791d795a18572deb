package cluster

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/capacity"
	"github.com/drover-dev/drover/internal/model/demand"
)

func TestNewClusterWaitsForMachines(t *testing.T) {
	w := newWorld(t)
	w.make("patient")
	w.capacity.shortage = &capacity.Shortage{Needs: []demand.Machines{{Plan: "local.small", Metro: "da", Count: 4}}}
	result, err := w.c.Reconcile(t.Context(), w.request("patient"))
	if err != nil || result.RequeueAfter < capacity.Interval {
		t.Errorf("a cluster that waits: %v, %v", result, err)
	}
	const want = "Waiting for machines: 4 of plan local.small in da are not available"
	for _, kind := range []string{anywherev1.CapacityReserved, anywherev1.Ready} {
		c := meta.FindStatusCondition(w.cluster("patient").Status.Conditions, kind)
		if c == nil || c.Reason != anywherev1.WaitingForCapacityReason || c.Message != want {
			t.Errorf("condition %s is %+v", kind, c)
		}
	}
	if made := w.names("patient"); len(made) > 0 {
		t.Errorf("a cluster without machines has %v", made)
	}
	if events := strings.Join(w.takeEvents(), "\n"); strings.Count(events, "Warning WaitingForCapacity "+want) != 1 {
		t.Errorf("events: %s", events)
	}
	version := w.cluster("patient").ResourceVersion
	w.reconcile("patient")
	if w.cluster("patient").ResourceVersion != version || len(w.takeEvents()) > 0 {
		t.Error("waiting on writes something")
	}

	w.capacity.err = errors.New("down")
	w.reconcile("patient")
	if c := meta.FindStatusCondition(w.cluster("patient").Status.Conditions, anywherev1.Ready); c.Reason != anywherev1.WaitingForCapacityReason {
		t.Errorf("a cluster continues because nobody answers: %+v", c)
	}
	w.capacity.err, w.capacity.shortage = nil, nil
	w.reconcile("patient")
	if c := meta.FindStatusCondition(w.cluster("patient").Status.Conditions, anywherev1.CapacityReserved); c != nil || len(w.names("patient")) == 0 {
		t.Errorf("a cluster with machines waits: %+v", c)
	}
	if events := strings.Join(w.takeEvents(), "\n"); !strings.Contains(events, "Normal CapacityReserved") {
		t.Errorf("events: %s", events)
	}
	asked := w.capacity.asked
	w.reconcile("patient")
	if w.capacity.asked != asked {
		t.Error("an existing cluster asks for machines")
	}
}

func TestNewClusterContinuesIfNobodyKnowsTheCapacity(t *testing.T) {
	w := newWorld(t)
	w.make("bold")
	w.capacity.err = errors.New("down")
	w.reconcile("bold")
	if len(w.names("bold")) == 0 {
		t.Error("the cluster waits")
	}
}
