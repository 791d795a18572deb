// Package cluster reconciles PacketClusters. It gives a cluster its control plane endpoint, an
// elastic address of its project, and releases the address when the cluster is deleted.
//
// It searches for an address by its tags before it reserves one, so that a lost response does not
// cost a second address. It never takes an address that another cluster may own. Package vip
// decides which machine holds the address. Start with Reconcile; choose.go decides which address is
// the cluster's, and status.go computes the conditions.
package cluster

import (
	"context"
	"time"

	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/failure"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/access"
)

// checkInterval is how often the API is asked whether a known address still exists.
const checkInterval = 10 * time.Minute

// Controller reconciles PacketClusters.
type Controller struct {
	// Client reads from the manager's cache, except for Secrets.
	Client ctrlclient.Client
	// Access returns the Packet API of a cluster.
	Access *access.Source
	// Events records what happened to a cluster.
	Events record.EventRecorder
	// Clock is the time.
	Clock clock.PassiveClock
	// BGP is how projects of clusters with kube-vip are configured.
	BGP BGP
	// WatchFilter limits the controller to objects with this value of the watch label; empty means
	// all.
	WatchFilter string

	checked recently
}

// BGP is the configuration of a project.
type BGP struct {
	ASN      int
	Password string
}

type step = reconcile.Step[*scope]

// Reconcile brings one cluster closer to its spec.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := c.open(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return reconcile.Result(err, 0)
	}
	err = reconcile.Run(ctx, s, c.steps(s))
	return s.close(ctx, err)
}

func (c *Controller) steps(s *scope) []step {
	switch {
	case s.Deleting():
		return []step{
			{Doing: "waiting for machines", Run: c.awaitMachines},
			failure.Step("releasing the address", c.release),
			{Doing: "removing the finalizer", Run: c.finish},
		}
	case s.packetCluster.Spec.VIPManager == infrav1.VIPManagerEMLB:
		return []step{{Doing: "checking the endpoint", Run: c.checkExternal}}
	case c.checkedRecently(s):
		return nil
	default:
		return []step{
			failure.Step("connecting to the Packet API", c.connect),
			failure.Step("enabling BGP", c.enableBGP),
			failure.Step("reserving an address", c.ensureAddress),
		}
	}
}
