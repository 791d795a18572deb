// Package vip keeps the control plane endpoint of a cluster on a machine that answers (vipManager CPEM).
//
// The endpoint is an elastic address; the machine that has it is checked from outside, and when it stops answering while another control
// plane machine does answer, the address is moved there. It is also moved off a machine that is being deleted, before that goes. Nothing
// runs inside the cluster for this. The package never reserves or releases addresses, see package cluster. Start with decide, which is the
// whole policy; Reconcile collects what it needs to know.
package vip

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/metal/access"
)

// recheck is how often it is made sure that nobody else has moved the address.
const recheck = 10 * time.Minute

// Prober says whether the API server of a machine answers.
type Prober interface {
	Healthy(ctx context.Context, target Target) bool
}

// Controller keeps endpoints on healthy machines.
type Controller struct {
	// Client reads from the manager's cache.
	Client ctrlclient.Client
	// Access finds the Packet API of a cluster.
	Access *access.Source
	// Prober checks machines.
	Prober Prober
	// Events receives moves.
	Events record.EventRecorder
	// Clock is the time.
	Clock clock.PassiveClock
	// WatchFilter limits the controller to objects with this value of the watch label; empty means all.
	WatchFilter string

	memory memory
}

// Reconcile looks at one cluster once.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := c.open(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	d, err := c.run(ctx, s)
	if err != nil {
		wait := outcome.Of("moving the endpoint", err)
		if wait == nil {
			return ctrl.Result{}, err
		}
		ctrl.LoggerFrom(ctx).Info("Packet API did not do as asked", "error", err.Error())
		s.problem, d.next = wait.Message, wait.After
	}
	if err := s.close(ctx); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: outcome.Jitter(d.next)}, nil
}

// run decides and acts. A decision may ask to check everybody first, and is then taken again. An API that does not answer is no reason to
// doubt where the address was put; only if there is nothing on record, or the address has to be moved, is there no way without it.
func (c *Controller) run(ctx context.Context, s *scope) (decision, error) {
	if err := c.findHolder(ctx, s); err != nil && s.packetCluster.Status.Endpoint.DeviceID == "" {
		return decision{}, err
	}
	c.probe(ctx, s, s.isHolder)
	d := decide(s.situation())
	if d.check {
		c.probe(ctx, s, func(candidate) bool { return true })
		d = decide(s.situation())
	}
	if d.to == "" {
		return d, nil
	}
	return d, c.move(ctx, s, d)
}

// memory is what is known of clusters beyond what their status says. Losing it, as a restart does, costs a few checks and calls.
type memory struct {
	mu       sync.Mutex
	clusters map[types.UID]*recollection
}

type recollection struct {
	verify time.Time // when to ask the API again who has the address
	holder string    // the device that had it, or "", unless the API did not tell
	failed error     // why it did not
	health map[string]health
}

// of is only called for one cluster at a time, as a cluster is not reconciled twice at once.
func (m *memory) of(uid types.UID) *recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clusters == nil {
		m.clusters = map[types.UID]*recollection{}
	}
	if m.clusters[uid] == nil {
		m.clusters[uid] = &recollection{health: map[string]health{}}
	}
	return m.clusters[uid]
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.clusters, uid)
}
