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
	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/metal/client"
)

func deviceOf(m *infrav1.PacketMachine) string {
	_, id, _ := strings.Cut(ptr.Deref(m.Spec.ProviderID, ""), "://")
	return id
}

// findHolder asks the API which device has the address, unless that was done not long ago: only we move it. What was found then counts more
// than the status, of which the cache may have an older version.
func (c *Controller) findHolder(ctx context.Context, s *scope) error {
	now, r := c.Clock.Now(), s.recollection
	if now.Before(r.verify) {
		if r.failed == nil {
			s.note(r.holder)
		}
		return r.failed
	}
	var holder string
	if holder, r.failed = c.askHolder(ctx, s); r.failed != nil {
		ctrl.LoggerFrom(ctx).V(2).Info("Packet API did not tell who has the endpoint", "error", r.failed.Error())
		r.verify = now.Add(pauseAfter(r.failed))
		return r.failed
	}
	r.verify = now.Add(recheck)
	s.note(holder)
	return nil
}

func (c *Controller) askHolder(ctx context.Context, s *scope) (string, error) {
	api, err := c.Access.For(ctx, s.packetCluster)
	if err != nil {
		return "", err
	}
	assignments, err := s.assignments(ctx, api)
	if err != nil || len(assignments) == 0 {
		return "", err
	}
	return assignments[0].DeviceID(), nil
}

// pauseAfter is how long to leave the API alone after a question that it did not answer.
func pauseAfter(err error) time.Duration {
	if wait := outcome.Of("", err); wait != nil {
		return wait.After
	}
	return 0
}

// assignments returns where the address is, in full. It makes sure that the reservation is still the cluster's own.
func (s *scope) assignments(ctx context.Context, api *client.Client) ([]client.IPAssignment, error) {
	e := s.packetCluster.Status.Endpoint
	reservation, err := api.ElasticAddress(ctx, e.ReservationID)
	if err != nil {
		return nil, err
	}
	if reservation.Address != e.Address {
		return nil, fmt.Errorf("reservation %q has address %s, the endpoint is %s", e.ReservationID, reservation.Address, e.Address)
	}
	var out []client.IPAssignment
	for _, a := range reservation.Assignments {
		if a.DeviceID() == "" {
			full, err := api.Assignment(ctx, a.Identity())
			if client.Is(err, client.NotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			a = *full
		}
		out = append(out, a)
	}
	return out, nil
}

// move takes the address off whatever has it and puts it on the machine. Should this be interrupted, nobody has the address, which the
// next look mends.
func (c *Controller) move(ctx context.Context, s *scope, d decision) error {
	api, err := c.Access.For(ctx, s.packetCluster)
	if err != nil {
		return err
	}
	assignments, err := s.assignments(ctx, api)
	if err != nil {
		return err
	}
	there := false
	for _, a := range assignments {
		if a.DeviceID() == d.to {
			there = true
			continue
		}
		if err := api.DeleteAddress(ctx, a.Identity()); err != nil && !client.Is(err, client.NotFound) {
			return err
		}
		s.note("")
	}
	if !there {
		if _, err := api.AssignAddress(ctx, d.to, s.packetCluster.Status.Endpoint.Address); err != nil {
			s.recollection.verify = time.Time{} // whether it was done has to be looked up
			return err
		}
	}
	s.moved(ctx, d)
	return nil
}

func (s *scope) moved(ctx context.Context, d decision) {
	e := s.packetCluster.Status.Endpoint
	s.note(d.to)
	now := metav1.NewTime(s.controller.Clock.Now())
	e.MovedAt = &now
	s.recollection.health[d.to] = health{}
	ctrl.LoggerFrom(ctx).Info("Moved the endpoint", "address", e.Address, "machine", e.Machine, "why", d.why)
	s.controller.Events.Eventf(s.packetCluster, corev1.EventTypeNormal, "EndpointMoved", "Assigned address %s to machine %q: %s", e.Address, e.Machine, d.why)
}

// note records who has the address.
func (s *scope) note(device string) {
	s.recollection.holder = device
	e := s.packetCluster.Status.Endpoint
	e.DeviceID, e.Machine = device, ""
	if m := s.machines[device]; m != nil {
		e.Machine = m.Name
	}
}
