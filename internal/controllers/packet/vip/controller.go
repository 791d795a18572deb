// Package vip keeps the control plane endpoint of a cluster on a machine that answers (vipManager
// CPEM).
//
// The endpoint is an elastic address. Local machines move it among themselves (package
// kube/endpoint), and the controller only records which has it. All other machines it checks from
// outside: when the one that holds the address stops answering and another control plane machine
// answers, it moves the address there. It also moves the address off a machine that is being
// deleted. Both go on while the cluster is paused. The package never reserves or releases
// addresses; package cluster does. Start with decide, which is the policy; Reconcile gathers its
// input, and status.go computes the condition.
package vip

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/controllers/packet/failure"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/access"
)

// recheck is how often the API is asked whether someone else has moved the address.
const recheck = 10 * time.Minute

// Prober checks the API servers of machines.
type Prober interface {
	Healthy(ctx context.Context, target Target) bool
}

// Controller keeps endpoints on healthy machines.
type Controller struct {
	// Client reads from the manager's cache.
	Client ctrlclient.Client
	// Access returns the Packet API of a cluster.
	Access *access.Source
	// Prober checks machines.
	Prober Prober
	// Leases reads which machine has an address that machines move themselves; nil means that none
	// do.
	Leases Leases
	// Events records moves.
	Events record.EventRecorder
	// Clock is the time.
	Clock clock.PassiveClock
	// WatchFilter limits the controller to objects with this value of the watch label; empty means
	// all.
	WatchFilter string

	memory memory
}

type step = reconcile.Step[*scope]

// Reconcile checks one cluster once.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := c.open(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return reconcile.Result(err, 0)
	}
	err = reconcile.Run(ctx, s, []step{
		{Doing: "checking whether the cluster is being moved", Run: c.stays},
		failure.Step("finding the machine that holds the endpoint", c.findHolder),
		{Doing: "checking control plane machines", Run: c.check},
		failure.Step("moving the endpoint", c.move),
	})
	return s.close(ctx, err)
}

// check probes machines and decides. A decision may require the health of all machines first.
func (c *Controller) check(ctx context.Context, s *scope) error {
	if c.observeAgents(ctx, s) {
		return nil
	}
	c.probe(ctx, s, s.isHolder)
	s.decision = decide(s.situation())
	if s.decision.check {
		c.probe(ctx, s, func(candidate) bool { return true })
		s.decision = decide(s.situation())
	}
	return nil
}

// memory is what is known of clusters beyond their status. Losing it in a restart costs a few
// checks and requests.
type memory struct {
	mu       sync.Mutex
	clusters map[types.UID]*observation
}

type observation struct {
	verify time.Time // when to ask the API again which device holds the address
	holder string    // the device that held it, or "", unless the request failed
	failed error     // why the request failed
	// movedAt is when the address was moved last. The status may lack it if a write failed.
	movedAt *metav1.Time
	health  map[string]health
	agents  agents
}

// of returns what is known of a cluster. A cluster is never reconciled twice at once.
func (m *memory) of(uid types.UID) *observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clusters == nil {
		m.clusters = map[types.UID]*observation{}
	}
	if m.clusters[uid] == nil {
		m.clusters[uid] = &observation{health: map[string]health{}}
	}
	return m.clusters[uid]
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.clusters, uid)
}
