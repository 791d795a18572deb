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

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/visit"
	"github.com/drover-dev/drover/internal/metal/access"
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

// step is one part of a reconcile.
type step = visit.Step[*scope]

// Reconcile brings one cluster closer to what its spec says.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := c.open(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	s.wait, err = visit.Walk(ctx, s, c.steps(s))
	return s.close(ctx, err)
}

// steps is what there is to do for a cluster.
func (c *Controller) steps(s *scope) []step {
	switch {
	case s.Deleting():
		return []step{
			{Doing: "waiting for machines", Run: c.awaitMachines},
			{Doing: "releasing the address", Run: c.release},
			{Doing: "removing the finalizer", Run: c.finish},
		}
	case s.packetCluster.Spec.VIPManager == infrav1.VIPManagerEMLB:
		return []step{{Doing: "checking the endpoint", Run: c.external}}
	case c.seenLately(s):
		return nil
	default:
		return []step{
			{Doing: "connecting to the Packet API", Run: c.connect},
			{Doing: "enabling BGP", Run: c.enableBGP},
			{Doing: "reserving an address", Run: c.ensureAddress},
		}
	}
}
