// Package cluster reconciles EtcdadmClusters: the external etcd of a Cluster.
//
//	addresses ──▶ certificates ──▶ observe ──▶ plan.Next ──▶ act ──▶ status.go
//
// It reserves an address for each slot and one spare, issues certificates for them, and carries out
// one action at a time, which package plan chooses from what etcd, its machines and the Packet API
// report. The machines are PacketMachines of its own: Machines of Cluster API would count as nodes.
// The key of etcd's CA never leaves the management plane.
//
// Etcd can't be watched from here, so its health is read twice a minute, and more often while
// something changes. The package never changes the Cluster, nor its control plane except for
// the condition about external etcd. Start with Reconcile; status.go computes all conditions.
package cluster

import (
	"context"
	"time"

	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/contents"
	"github.com/drover-dev/drover/internal/controllers/packet/failure"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/access"
)

const (
	// checkInterval is how often a healthy etcd is observed, changeInterval one that changes.
	checkInterval  = 30 * time.Second
	changeInterval = time.Second
)

// Controller reconciles EtcdadmClusters.
type Controller struct {
	// Client reads from the manager's cache, except for Secrets.
	Client ctrlclient.Client
	// Secrets reads Secrets.
	Secrets *contents.Store
	// Access returns the Packet API of a cluster.
	Access *access.Source
	// Etcd connects to members.
	Etcd Dialer
	// Events records what happened.
	Events record.EventRecorder
	// Clock is the time.
	Clock clock.PassiveClock
	// WatchFilter limits the controller to objects with this value of the watch label; empty means
	// all.
	WatchFilter string

	unhealthy reconcile.Memory[map[string]time.Time]
}

type step = reconcile.Step[*scope]

// Reconcile brings one etcd closer to its spec.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := c.open(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return reconcile.Result(err, 0)
	}
	defer s.disconnect()
	err = reconcile.Run(ctx, s, c.steps(s))
	return s.close(ctx, err)
}

func (c *Controller) steps(s *scope) []step {
	if s.Deleting() {
		return []step{
			{Doing: "waiting for the control plane", Run: c.awaitControlPlane},
			{Doing: "deleting machines", Run: c.deleteMachines},
			failure.Step("releasing addresses", c.releaseAddresses),
			{Doing: "removing the finalizer", Run: c.release},
		}
	}
	return []step{
		{Doing: "deleting a leftover", Run: c.deleteWithCluster},
		{Doing: "waiting for the cluster", Run: c.awaitCluster},
		failure.Step("reserving addresses", c.ensureAddresses),
		{Doing: "issuing certificates", Run: c.ensureCertificates},
		{Doing: "reading machines", Run: c.readMachines},
		{Doing: "observing etcd", Run: c.observe},
		{Doing: "deciding", Run: c.decide},
		failure.Step("changing etcd", c.act),
	}
}
