package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/etcd/boot"
	"github.com/drover-dev/drover/internal/controllers/etcd/plan"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

func (c *Controller) decide(_ context.Context, s *scope) error {
	s.action = plan.Next(*s.world)
	return nil
}

// act carries out the decision. A change that etcd rejects is decided again: it may have been made
// by an earlier attempt whose answer got lost.
func (c *Controller) act(ctx context.Context, s *scope) error {
	a := s.action
	if a.Kind == plan.Done || a.Kind == plan.Wait {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("Changing etcd", "action", a.Kind, "slot", a.Slot, "at", a.At, "machine", a.Machine, "member", fmt.Sprintf("%x", a.Member))
	switch a.Kind {
	case plan.Order:
		return c.order(ctx, s, a)
	case plan.Delete:
		return c.deleteMachine(ctx, s, a.Machine)
	case plan.Assign:
		return c.assign(ctx, s, a.At, a.Machine)
	case plan.Unassign:
		return s.unassignAll(ctx, a.At)
	case plan.Release:
		return s.giveBack(ctx, a.At)
	default:
		return c.change(ctx, s, a)
	}
}

// change changes the membership.
func (c *Controller) change(ctx context.Context, s *scope, a plan.Action) error {
	if err := s.peer.Change(ctx, s.changeFor(a)); err != nil {
		ctrl.LoggerFrom(ctx).V(2).Info("Etcd rejected a change", "action", a.Kind, "error", err.Error())
		return &reconcile.Wait{
			Reason: etcdv1.WaitingForMembersReason, Message: fmt.Sprintf("Etcd is not ready for a change (%s)", a.Kind), After: changeInterval,
		}
	}
	if a.Kind == plan.UpdatePeer {
		return c.recordAddress(ctx, s, a)
	}
	c.Events.Eventf(s.etcd, corev1.EventTypeNormal, "MembershipChanged", "%s", eventFor(s.world, a))
	return nil
}

func (s *scope) changeFor(a plan.Action) Change {
	switch a.Kind {
	case plan.AddLearner:
		return Change{Add: boot.PeerURL(s.addresses[a.At].Address)}
	case plan.Promote:
		return Change{Promote: a.Member}
	case plan.Remove:
		return Change{Remove: a.Member}
	case plan.UpdatePeer:
		return Change{Update: a.Member, Peer: boot.PeerURL(s.addresses[a.At].Address)}
	case plan.MoveLeader:
		return Change{Lead: a.Member, From: s.leaderURL()}
	default:
		return Change{}
	}
}

func (s *scope) leaderURL() string {
	for _, m := range s.world.Members {
		if m.Leader {
			return boot.ClientURL(s.addresses[m.At].Address)
		}
	}
	return ""
}

// recordAddress records on a machine that its member has the address of its slot.
func (c *Controller) recordAddress(ctx context.Context, s *scope, a plan.Action) error {
	for _, m := range s.world.Members {
		if machine := s.machine(m.Name); m.ID == a.Member && machine != nil {
			return c.annotate(ctx, machine, etcdv1.AddressAnnotation, s.addresses[a.At].Address)
		}
	}
	return nil
}

// eventFor describes a change of the membership.
func eventFor(w *plan.World, a plan.Action) string {
	name := ""
	for _, m := range w.Members {
		if m.ID == a.Member {
			name = memberName(m)
		}
	}
	switch a.Kind {
	case plan.AddLearner:
		return "Added a learner"
	case plan.Promote:
		return fmt.Sprintf("Promoted member %q", name)
	case plan.MoveLeader:
		return fmt.Sprintf("Made member %q the leader", name)
	default:
		return fmt.Sprintf("Removed member %q", name)
	}
}
