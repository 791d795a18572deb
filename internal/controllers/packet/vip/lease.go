package vip

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	"github.com/drover-dev/drover/internal/base/elapsed"
	"github.com/drover-dev/drover/internal/kube/endpoint"
)

// Lease is the Lease in a workload cluster by which its machines move the address themselves. The
// zero Lease means that there is none.
type Lease struct {
	// Machine holds the address, or "".
	Machine string
	// Version changes with every renewal.
	Version string
}

// Leases reads Leases of workload clusters.
type Leases interface {
	Lease(ctx context.Context, cluster ctrlclient.ObjectKey) (Lease, error)
}

// Workloads connects to workload clusters.
type Workloads interface {
	GetUncachedClient(ctx context.Context, cluster ctrlclient.ObjectKey) (ctrlclient.Client, error)
}

// WorkloadLeases reads Leases through the endpoint, which is also a check of it.
type WorkloadLeases struct{ Workloads Workloads }

// Lease implements Leases.
func (w WorkloadLeases) Lease(ctx context.Context, cluster ctrlclient.ObjectKey) (Lease, error) {
	c, err := w.Workloads.GetUncachedClient(ctx, cluster)
	if err != nil {
		return Lease{}, fmt.Errorf("connecting to cluster %q: %w", cluster, err)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	l := &coordinationv1.Lease{}
	err = c.Get(ctx, ctrlclient.ObjectKey{Namespace: endpoint.LeaseNamespace, Name: endpoint.LeaseName}, l)
	if apierrors.IsNotFound(err) {
		return Lease{}, nil
	}
	if err != nil {
		return Lease{}, fmt.Errorf("reading the Lease of the endpoint of cluster %q: %w", cluster, err)
	}
	return Lease{Machine: ptr.Deref(l.Spec.HolderIdentity, ""), Version: l.ResourceVersion}, nil
}

const (
	// leaseTrust is how long machines are left alone that renewed their Lease. They take a few
	// seconds to move the address.
	leaseTrust = 20 * time.Second
	// leaseDoubt is how long to wait for the first renewal.
	leaseDoubt = 10 * time.Second
	// checkAgents is how often to read a Lease that is renewed, and checkRenewal one that may be.
	checkAgents  = 15 * time.Second
	checkRenewal = 2 * time.Second
	// checkNoLease is how often to ask whether there is one by now.
	checkNoLease = time.Minute
)

// agents are the machines that move the address themselves, as far as is known.
type agents struct {
	version string
	// machine is the holder according to the Lease.
	machine string
	found   time.Time // when the Lease was first read
	renewed time.Time // when it had last changed since it was read before
	failed  bool      // the last attempt to read it failed
	asked   time.Time // when it was missing
}

// saw records a Lease.
func (a agents) saw(l Lease, now time.Time) agents {
	switch {
	case l == Lease{}:
		return agents{asked: now}
	case a.version == "":
		return agents{version: l.Version, machine: l.Machine, found: now}
	case a.version != l.Version:
		a.renewed = now
	}
	a.version, a.machine, a.failed = l.Version, l.Machine, false
	return a
}

// attend returns what to do where machines move the address themselves, and whether they do. A
// Lease that nobody renews may be all that is left of such machines, so it doesn't count.
func (a agents) attend(now time.Time) (decision, bool) {
	recent := func(t time.Time, within time.Duration) bool { return !t.IsZero() && elapsed.Since(t, now) < within }
	switch {
	case recent(a.renewed, leaseTrust) && a.failed:
		return decision{next: checkFailing}, true
	case recent(a.renewed, leaseTrust):
		return decision{next: checkAgents}, true
	case a.renewed.IsZero() && recent(a.found, leaseDoubt):
		return decision{next: checkRenewal}, true
	default:
		return decision{}, false
	}
}

// observeAgents reads the Lease and reports whether the machines move the address themselves. Then
// nothing is moved: the status follows them.
func (c *Controller) observeAgents(ctx context.Context, s *scope) bool {
	r, now := s.recollection, c.Clock.Now()
	if c.Leases == nil || !conditions.IsTrue(s.cluster, clusterv1.ClusterControlPlaneInitializedCondition) {
		return false
	}
	if !r.agents.asked.IsZero() && elapsed.Since(r.agents.asked, now) < checkNoLease {
		return false
	}
	lease, err := c.Leases.Lease(ctx, ctrlclient.ObjectKeyFromObject(s.cluster))
	if err != nil {
		r.agents.failed = true
	} else {
		r.agents = r.agents.saw(lease, now)
	}
	d, attended := r.agents.attend(now)
	if attended {
		s.decision = d
		s.follow(r.agents)
	}
	return attended
}

// follow records which machine has the address.
func (s *scope) follow(a agents) {
	e := s.packetCluster.Status.Endpoint
	i := slices.IndexFunc(s.candidates, func(one candidate) bool { return strings.EqualFold(one.machine, a.machine) })
	if i < 0 {
		return
	}
	device := s.candidates[i].device
	known := s.recollection.health[device]
	if a.failed {
		s.recollection.health[device] = known.failed()
	} else {
		s.recollection.health[device] = known.succeeded()
	}
	if device == s.reported {
		s.setHolder(device) // whichever machine the API has assigned it to
		return
	}
	s.recordMove(device)
	s.event("Machine %q took address %s", e.Machine, e.Address)
}
