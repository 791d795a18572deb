package vip

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/failure"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/tags"
)

func deviceOf(m *infrav1.PacketMachine) string {
	_, id, _ := strings.Cut(ptr.Deref(m.Spec.ProviderID, ""), "://")
	return id
}

// findHolder finds the device that holds the address. If the API does not respond, that is no
// reason to doubt the status; only without a holder on record is there no way to go on.
func (c *Controller) findHolder(ctx context.Context, s *scope) error {
	if err := c.verifyHolder(ctx, s); err != nil && s.packetCluster.Status.Endpoint.DeviceID == "" {
		return err
	}
	return nil
}

// verifyHolder asks the API which device holds the address, unless it did so recently: only this
// controller moves the address. What it found then takes precedence over the status.
func (c *Controller) verifyHolder(ctx context.Context, s *scope) error {
	now, r := c.Clock.Now(), s.recollection
	if now.Before(r.verify) {
		if r.failed == nil {
			s.setHolder(r.holder)
		}
		return r.failed
	}
	var holder string
	if holder, r.failed = c.readHolder(ctx, s); r.failed != nil {
		ctrl.LoggerFrom(ctx).V(2).Info("Finding the machine that holds the endpoint failed", "error", r.failed.Error())
		r.verify = now.Add(pauseAfter(r.failed))
		return r.failed
	}
	r.verify = now.Add(recheck)
	s.setHolder(holder)
	return nil
}

func (c *Controller) readHolder(ctx context.Context, s *scope) (string, error) {
	api, err := c.Access.For(ctx, s.packetCluster)
	if err != nil {
		return "", err
	}
	_, assignments, err := s.assignments(ctx, api)
	if err != nil || len(assignments) == 0 {
		return "", err
	}
	return assignments[0].DeviceID(), nil
}

// pauseAfter is how long to send no request to the API after one failed.
func pauseAfter(err error) time.Duration {
	if wait := failure.Wait("", err); wait != nil {
		return wait.After
	}
	return 0
}

// assignments returns the reservation and the assignments of the address, with their devices. It
// checks that the reservation is still the cluster's.
func (s *scope) assignments(ctx context.Context, api *client.Client) (*client.IPReservation, []client.IPAssignment, error) {
	e := s.packetCluster.Status.Endpoint
	reservation, err := api.ElasticAddress(ctx, e.ReservationID)
	if err != nil {
		return nil, nil, err
	}
	if reservation.Address != e.Address {
		return nil, nil, fmt.Errorf("reservation %q has address %s, the endpoint is %s", e.ReservationID, reservation.Address, e.Address)
	}
	var out []client.IPAssignment
	for _, a := range reservation.Assignments {
		if a.DeviceID() == "" {
			full, err := api.Assignment(ctx, a.Identity())
			if client.Is(err, client.NotFound) {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			a = *full
		}
		out = append(out, a)
	}
	return reservation, out, nil
}

// mayTake reports an error if moving the address would take it from its user: a device that is no
// machine of the cluster holds it, and its tags don't say that it is the cluster's. The tag of the
// former provider doesn't say that, since whoever creates a cluster chooses the name in it.
func (s *scope) mayTake(reservation *client.IPReservation, assignments []client.IPAssignment) error {
	owner := tags.Endpoint{Namespace: s.packetCluster.Namespace, Cluster: s.cluster.Name}
	if owner.Owns(reservation.Tags) {
		return nil
	}
	for _, a := range assignments {
		if s.machines[a.DeviceID()] == nil {
			return &reconcile.Wait{
				Reason: infrav1.AddressInUseReason,
				Message: fmt.Sprintf("Address %s is assigned to a device outside of the cluster and lacks the tags of the cluster: "+
					"unassign it, or add the tags %s", reservation.Address, strings.Join(owner.Encode(), " and ")),
				After: checkAlone,
			}
		}
	}
	return nil
}

// move removes the address from the device that holds it and assigns it to the one that was decided
// on. If interrupted in between, the next reconcile assigns it.
func (c *Controller) move(ctx context.Context, s *scope) error {
	if s.decision.to == "" {
		return nil
	}
	api, err := c.Access.For(ctx, s.packetCluster)
	if err != nil {
		return err
	}
	reservation, assignments, err := s.assignments(ctx, api)
	if err != nil {
		return err
	}
	if err := s.mayTake(reservation, assignments); err != nil {
		return err
	}
	assigned := false
	for _, a := range assignments {
		if a.DeviceID() == s.decision.to {
			assigned = true
			continue
		}
		if err := api.DeleteAddress(ctx, a.Identity()); err != nil && !client.Is(err, client.NotFound) {
			return err
		}
		s.setHolder("")
	}
	if !assigned {
		if _, err := api.AssignAddress(ctx, s.decision.to, s.packetCluster.Status.Endpoint.Address); err != nil {
			s.recollection.verify = time.Time{} // the outcome has to be verified
			return err
		}
	}
	s.moved(ctx)
	return nil
}

func (s *scope) moved(ctx context.Context) {
	e, d := s.packetCluster.Status.Endpoint, s.decision
	s.recollection.health[d.to] = health{}
	s.recordMove(d.to)
	ctrl.LoggerFrom(ctx).Info("Moved the endpoint", "address", e.Address, "machine", e.Machine, "why", d.why)
	s.event("Assigned address %s to machine %q: %s", e.Address, e.Machine, d.why)
}

func (s *scope) event(format string, args ...any) {
	s.controller.Events.Eventf(s.packetCluster, corev1.EventTypeNormal, "EndpointMoved", format, args...)
}

// recordMove records a device that holds the address from now on.
func (s *scope) recordMove(device string) {
	now := metav1.NewTime(s.controller.Clock.Now())
	s.recollection.movedAt = &now
	s.setHolder(device)
}

// setHolder records the device that holds the address.
func (s *scope) setHolder(device string) {
	s.recollection.holder = device
	e := s.packetCluster.Status.Endpoint
	e.DeviceID, e.Machine = device, ""
	if moved := s.recollection.movedAt; moved != nil {
		e.MovedAt = moved.DeepCopy() // the recorded time may be in the future, if the clock was set
	}
	if m := s.machines[device]; m != nil {
		e.Machine = m.Name
	}
}
