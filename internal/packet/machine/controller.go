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

	"github.com/drover-dev/drover/internal/packet/access"
	"github.com/drover-dev/drover/internal/packet/outcome"
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

// step is one part of a reconcile. It ends in done (nil, nil), wait, or error.
type step struct {
	doing string
	run   func(context.Context, *scope) (*outcome.Wait, error)
}

// Reconcile brings one machine closer to what its spec says.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := c.open(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.deleting() {
		err = s.walk(ctx, []step{
			{"reaching the Packet API", c.connectToDelete},
			{"removing the device", c.remove},
			{"letting go of the machine", c.release},
		})
		return s.close(ctx, err)
	}
	err = s.walk(ctx, []step{
		{"waiting for the cluster", c.awaitCluster},
		{"reaching the Packet API", c.connect},
		{"looking for the device", c.find},
		{"ordering the device", c.order},
		{"checking the device", c.settle},
		{"making the BGP session", c.announce},
		{"putting the provider id on the node", c.adoptNode},
	})
	return s.close(ctx, err)
}

// walk runs the steps until one has to wait or fails. Failures of the Packet API become waits.
func (s *scope) walk(ctx context.Context, steps []step) error {
	for _, st := range steps {
		wait, err := st.run(ctx, s)
		if err != nil {
			wait = outcome.Of(st.doing, err)
			if wait == nil {
				return err
			}
			ctrl.LoggerFrom(ctx).V(2).Info("Packet API did not do as asked", "step", st.doing, "error", err.Error())
		}
		if wait != nil {
			s.wait = wait
			return nil
		}
	}
	return nil
}
