// Package cluster reconciles PacketClusters: it gives a cluster its control plane endpoint, an elastic address of its project, and takes
// it back when the cluster goes.
//
// An address is found by its tags before one is asked for, so that a lost answer does not cost a second one. It never takes an address
// that another cluster may own; in doubt it takes a new one or asks. Which machine has the address is not its concern, see package vip.
// Start with Reconcile; which address is the cluster's is decided in choose.go, the conditions are made in status.go.
package cluster

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

// checkInterval is how often an address that is known to be there is looked up again.
const checkInterval = 10 * time.Minute

// Controller reconciles PacketClusters.
type Controller struct {
	// Client reads from the manager's cache, Secrets excepted.
	Client ctrlclient.Client
	// Access finds the Packet API of a cluster.
	Access *access.Source
	// Events receives what happened to a cluster.
	Events record.EventRecorder
	// Clock is the time.
	Clock clock.PassiveClock
	// BGP is how projects of clusters with kube-vip are set up.
	BGP BGP
	// WatchFilter limits the controller to objects with this value of the watch label; empty means all.
	WatchFilter string

	checked recently
}

// BGP are the settings of a project.
type BGP struct {
	ASN      int
	Password string
}

// step is one part of a reconcile. It ends in done (nil, nil), wait, or error.
type step struct {
	doing string
	run   func(context.Context, *scope) (*outcome.Wait, error)
}

// Reconcile brings one cluster closer to what its spec says.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := c.open(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.deleting() {
		err = s.walk(ctx, []step{
			{"waiting for the machines", c.awaitMachines},
			{"releasing the address", c.release},
			{"letting go of the cluster", c.finish},
		})
		return s.close(ctx, err)
	}
	err = s.walk(ctx, []step{
		{"checking the endpoint", c.external},
		{"reaching the Packet API", c.connect},
		{"enabling BGP", c.enableBGP},
		{"reserving an address", c.ensureAddress},
	})
	return s.close(ctx, err)
}

// walk runs the steps until one has to wait or fails. Failures of the Packet API become waits.
func (s *scope) walk(ctx context.Context, steps []step) error {
	for _, st := range steps {
		if s.settled {
			return nil
		}
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
