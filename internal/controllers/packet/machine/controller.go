// Package machine reconciles PacketMachines: one device in the Packet API for each, from the order to the proof that it is gone.
//
// The one promise it never breaks is one device per machine. A claim is written to the PacketMachine before a device is ordered, the
// device carries it as a tag, and whoever comes next, after a lost answer, a crash or a move to another management plane, looks for that
// tag before ordering again. No failure of the API is final: a step waits, says why in the condition InstanceReady, and is tried again.
//
//	         no device                    failed, never was up
//	┌──── claim ─► order ◄──────────────────────────┐
//	│                │                              │
//	│ found by tags  ▼                              │
//	└──────────► provisioning ──► failed, vanished ─┘
//	                 │
//	                 ▼        powered off, reinstalled
//	               active ◄─────────────────────► not ready
//	                 │
//	   gone: InstanceNotFound, for a MachineHealthCheck to act on
//
// It never touches a device that does not carry the machine's tags, and never reads a workload cluster except to put the provider id on a
// node. Start with Reconcile; the conditions are all made in status.go.
package machine

import (
	"context"
	"time"

	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/controllers/packet/visit"
	"github.com/drover-dev/drover/internal/metal/access"
)

// Controller reconciles PacketMachines.
type Controller struct {
	// Client reads from the manager's cache, Secrets excepted.
	Client ctrlclient.Client
	// Access finds the Packet API of a cluster.
	Access *access.Source
	// Workloads connects to workload clusters.
	Workloads Workloads
	// Events receives what happened to a machine.
	Events record.EventRecorder
	// Clock is the time.
	Clock clock.PassiveClock
	// PollInterval is how often a device that is up is looked at.
	PollInterval time.Duration
	// WatchFilter limits the controller to objects with this value of the watch label; empty means all.
	WatchFilter string

	nodes nodeWatcher
}

// step is one part of a reconcile.
type step = visit.Step[*scope]

// Reconcile brings one machine closer to what its spec says.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := c.open(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	s.wait, err = visit.Walk(ctx, s, c.steps(s))
	return s.close(ctx, err)
}

// steps is what there is to do for a machine.
func (c *Controller) steps(s *scope) []step {
	if s.Deleting() {
		return []step{
			{Doing: "connecting to the Packet API", Run: c.connectToDelete},
			{Doing: "deleting the device", Run: c.remove},
			{Doing: "removing the finalizer", Run: c.release},
		}
	}
	return []step{
		{Doing: "waiting for the cluster", Run: c.awaitCluster},
		{Doing: "connecting to the Packet API", Run: c.connect},
		{Doing: "searching for the device", Run: c.find},
		{Doing: "ordering a device", Run: c.order},
		{Doing: "checking the device", Run: c.settle},
		{Doing: "starting the BGP session", Run: c.announce},
		{Doing: "initializing the node", Run: c.adoptNode},
		{Doing: "reading the result of the boot", Run: c.watchBoot},
	}
}
