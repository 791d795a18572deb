// Package machine reconciles PacketMachines: each has one device in the Packet API, from the order
// until the device is deprovisioned.
//
// It guarantees one device per machine. It writes a claim to the PacketMachine before it orders a
// device, and the device carries the claim as a tag. After a lost response, a crash, or a move to
// another management plane, it searches for that tag before it orders again. No failure of the API
// is final: the step waits, explains itself in the condition InstanceReady, and is retried.
//
//	         no device                    failed, never was active
//	┌──── claim ─► order ◄──────────────────────────┐
//	│                │                              │
//	│ found by tags  ▼                              │
//	└──────────► provisioning ──► failed, lost ─────┘
//	                 │
//	                 ▼        powered off, reinstalled
//	               active ◄─────────────────────► not ready
//	                 │
//	   lost: InstanceNotFound, for a MachineHealthCheck to act on
//
// It never touches a device without the machine's tags, and uses the workload cluster only to
// initialize the node. Start with Reconcile; status.go computes all conditions.
package machine

import (
	"context"
	"time"

	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/controllers/packet/failure"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/access"
)

// Controller reconciles PacketMachines.
type Controller struct {
	// Client reads from the manager's cache, except for Secrets.
	Client ctrlclient.Client
	// Access returns the Packet API of a cluster.
	Access *access.Source
	// Workloads connects to workload clusters.
	Workloads Workloads
	// Events records what happened to a machine.
	Events record.EventRecorder
	// Clock is the time.
	Clock clock.PassiveClock
	// PollInterval is how often the state of an active device is read.
	PollInterval time.Duration
	// WatchFilter limits the controller to objects with this value of the watch label; empty means
	// all.
	WatchFilter string

	// orders are the orders without a known outcome.
	orders reconcile.Ages
	nodes  nodeWatcher
}

type step = reconcile.Step[*scope]

// Reconcile brings one machine closer to its spec.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := c.open(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return reconcile.Result(err, 0)
	}
	err = reconcile.Run(ctx, s, c.steps(s))
	return s.close(ctx, err)
}

func (c *Controller) steps(s *scope) []step {
	if s.Deleting() {
		return []step{
			failure.Step("connecting to the Packet API", c.connectToDelete),
			failure.Step("deleting the device", c.remove),
			{Doing: "removing the finalizer", Run: c.release},
		}
	}
	return []step{
		{Doing: "waiting for the cluster", Run: c.awaitCluster},
		failure.Step("connecting to the Packet API", c.connect),
		failure.Step("searching for the device", c.find),
		failure.Step("ordering a device", c.order),
		failure.Step("checking the device", c.checkDevice),
		{Doing: startingSession, Run: c.startSession},
		{Doing: "initializing the node", Run: c.adoptNode},
		{Doing: readingBoot, Run: c.watchBoot},
	}
}
