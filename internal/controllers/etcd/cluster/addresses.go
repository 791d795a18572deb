package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/etcd/plan"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/tags"
)

// addresses are the reservations of an etcd, by slot and plan.Spare.
type addresses map[int]*client.IPReservation

// slot returns the slot of an address, or plan.Unknown.
func (a addresses) slot(address string) int {
	for slot, ip := range a {
		if ip.Address == address {
			return slot
		}
	}
	return plan.Unknown
}

func (c *Controller) awaitCluster(_ context.Context, s *scope) error {
	if s.packetCluster == nil || !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false) {
		return &reconcile.Wait{
			Reason:  etcdv1.WaitingForInfrastructureReason,
			Message: fmt.Sprintf("Waiting for the infrastructure of Cluster %q", s.cluster.Name), After: time.Minute,
		}
	}
	return nil
}

func (s *scope) connect(ctx context.Context) (err error) {
	s.api, err = s.controller.Access.For(ctx, s.packetCluster)
	return err
}

// ensureAddresses finds the addresses by their tags, and reserves those that are missing: one for
// each slot, and the spare.
func (c *Controller) ensureAddresses(ctx context.Context, s *scope) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.readAddresses(ctx); err != nil {
		return err
	}
	for _, slot := range append(slots(s.replicas()), plan.Spare) {
		if s.addresses[slot] != nil {
			continue
		}
		if s.initialized() && slot != plan.Spare && slot < s.known() {
			return &reconcile.Wait{
				Reason: etcdv1.WaitingForInfrastructureReason, After: time.Minute,
				Message: fmt.Sprintf("The address of slot %d is no longer in project %q: reserve it there again", slot, s.packetCluster.Spec.ProjectID),
			}
		}
		if err := c.reserve(ctx, s, slot); err != nil {
			return err
		}
	}
	for _, slot := range slots(s.replicas()) {
		s.endpoints = append(s.endpoints, s.addresses[slot].Address)
	}
	return nil
}

// known is the number of endpoints that clients have been given.
func (s *scope) known() int {
	if s.etcd.Status.Endpoints == "" {
		return 0
	}
	return len(splitList(s.etcd.Status.Endpoints))
}

func slots(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// readAddresses lists the reservations of this etcd. Of two for the same slot, because a response
// was lost, the older one counts.
func (s *scope) readAddresses(ctx context.Context) error {
	all, err := s.api.ElasticAddresses(ctx, s.packetCluster.Spec.ProjectID)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b client.IPReservation) int {
		return compare(a.CreatedAt+a.ID, b.CreatedAt+b.ID)
	})
	s.addresses = addresses{}
	for i := range all {
		slot, ok := s.tag().Slot(all[i].Tags)
		if ok && s.addresses[slot] == nil {
			s.addresses[slot] = &all[i]
		}
	}
	return s.completeAssignments(ctx)
}

// completeAssignments reads which devices have the addresses, if the list does not say.
func (s *scope) completeAssignments(ctx context.Context) error {
	for _, ip := range s.addresses {
		for i, a := range ip.Assignments {
			if a.DeviceID() != "" {
				continue
			}
			full, err := s.api.Assignment(ctx, a.Identity())
			if err != nil && !client.Is(err, client.NotFound) {
				return err
			}
			if err == nil {
				ip.Assignments[i] = *full
			}
		}
	}
	return nil
}

func (s *scope) tag() tags.Etcd {
	return tags.Etcd{Namespace: s.etcd.Namespace, Cluster: s.etcd.Labels[clusterNameLabel], Name: s.etcd.Name}
}

func (c *Controller) reserve(ctx context.Context, s *scope, slot int) error {
	spec := s.packetCluster.Spec
	request := client.AddressRequest{
		Type: "public_ipv4", Quantity: 1, Metro: spec.Metro, FailOnApprovalRequired: true, Tags: s.tag().Encode(slot),
	}
	if spec.Metro == "" {
		request.Facility = spec.Facility
	}
	address, err := s.api.ReserveAddress(ctx, spec.ProjectID, request)
	if err != nil {
		return err
	}
	s.addresses[slot] = address
	ctrl.LoggerFrom(ctx).Info("Reserved an address", "address", address.Address, "slot", slot)
	return nil
}

// assign makes a machine the only one with an address.
func (c *Controller) assign(ctx context.Context, s *scope, at int, machine string) error {
	m := s.machine(machine)
	device := deviceOf(m)
	assigned := false
	for _, a := range s.addresses[at].Assignments {
		if a.DeviceID() == device {
			assigned = true
			continue
		}
		if err := s.unassign(ctx, a); err != nil {
			return err
		}
	}
	if assigned {
		return nil
	}
	if _, err := s.api.AssignAddress(ctx, device, s.addresses[at].Address); err != nil {
		return err
	}
	c.Events.Eventf(s.etcd, corev1.EventTypeNormal, "AddressAssigned", "Assigned address %s to machine %q", s.addresses[at].Address, machine)
	return nil
}

func (s *scope) unassign(ctx context.Context, a client.IPAssignment) error {
	if err := s.api.DeleteAddress(ctx, a.Identity()); err != nil && !client.Is(err, client.NotFound) {
		return err
	}
	return nil
}

func (s *scope) unassignAll(ctx context.Context, at int) error {
	for _, a := range s.addresses[at].Assignments {
		if err := s.unassign(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// giveBack releases an address.
func (s *scope) giveBack(ctx context.Context, at int) error {
	if err := s.unassignAll(ctx, at); err != nil {
		return err
	}
	if err := s.api.DeleteAddress(ctx, s.addresses[at].ID); err != nil && !client.Is(err, client.NotFound) {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Released an address", "address", s.addresses[at].Address, "slot", at)
	return nil
}
