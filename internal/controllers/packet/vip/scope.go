package vip

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// scope is one reconcile: its objects, and the facts that its steps gather.
type scope struct {
	*reconcile.Visit[*infrav1.PacketCluster]

	controller *Controller

	packetCluster *infrav1.PacketCluster
	cluster       *clusterv1.Cluster
	machines      map[string]*infrav1.PacketMachine // by device
	candidates    []candidate
	recollection  *observation
	// reported is the device that held the address according to the status.
	reported string

	decision decision
}

// open returns nil if the cluster has no address that could be moved.
func (c *Controller) open(ctx context.Context, key ctrlclient.ObjectKey) (*scope, error) {
	s := &scope{controller: c, packetCluster: &infrav1.PacketCluster{}}
	v, err := reconcile.Opening[*infrav1.PacketCluster]{Client: c.Client, Skip: s.skip}.Open(ctx, key, s.packetCluster)
	if err != nil || v == nil {
		return nil, err
	}
	s.Visit = v
	s.recollection = c.memory.of(s.packetCluster.UID)
	s.reported = s.packetCluster.Status.Endpoint.DeviceID
	if err := s.loadCandidates(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// skip doesn't ask whether the cluster is paused: a failed machine doesn't wait until it is
// resumed. While a cluster is moved to another management plane, only the copy that it leaves has a
// status with an address.
func (s *scope) skip(ctx context.Context, p *infrav1.PacketCluster) (_ bool, err error) {
	if !p.DeletionTimestamp.IsZero() {
		s.controller.memory.forget(p.UID)
		return true, nil
	}
	if !movable(p) {
		return true, nil
	}
	s.cluster, err = util.GetOwnerCluster(ctx, s.controller.Client, p.ObjectMeta)
	return err != nil || s.cluster == nil, ctrlclient.IgnoreNotFound(err)
}

// stays stops if a paused cluster lacks the machine that holds the address, or if that machine is
// being deleted. Nobody deletes machines of a paused cluster, but a move to another management
// plane deletes the objects that it leaves.
func (*Controller) stays(_ context.Context, s *scope) error {
	if !annotations.IsPaused(s.cluster, s.packetCluster) {
		return nil
	}
	for _, c := range s.candidates {
		if s.isHolder(c) && !c.leaving {
			return nil
		}
	}
	return reconcile.Stop
}

func movable(c *infrav1.PacketCluster) bool {
	return c.Spec.VIPManager == infrav1.VIPManagerCPEM && c.Status.Endpoint != nil && c.Status.Endpoint.ReservationID != "" &&
		c.Status.Endpoint.Address == c.Spec.ControlPlaneEndpoint.Host
}

// loadCandidates reads the control plane machines with a device, and forgets the health of all
// others.
func (s *scope) loadCandidates(ctx context.Context) error {
	c := s.controller.Client
	owners := &clusterv1.MachineList{}
	err := c.List(ctx, owners, ctrlclient.InNamespace(s.cluster.Namespace),
		ctrlclient.MatchingLabels{clusterv1.ClusterNameLabel: s.cluster.Name}, ctrlclient.HasLabels{clusterv1.MachineControlPlaneLabel})
	if err != nil {
		return fmt.Errorf("listing control plane machines of cluster %q: %w", s.cluster.Name, err)
	}
	s.machines = map[string]*infrav1.PacketMachine{}
	for i := range owners.Items {
		if err := s.addCandidate(ctx, &owners.Items[i]); err != nil {
			return err
		}
	}
	maps.DeleteFunc(s.recollection.health, func(device string, _ health) bool { return s.machines[device] == nil })
	return nil
}

func (s *scope) addCandidate(ctx context.Context, owner *clusterv1.Machine) error {
	machine := &infrav1.PacketMachine{}
	key := ctrlclient.ObjectKey{Namespace: owner.Namespace, Name: owner.Spec.InfrastructureRef.Name}
	if err := s.controller.Client.Get(ctx, key, machine); err != nil {
		return ctrlclient.IgnoreNotFound(err)
	}
	device := deviceOf(machine)
	if device == "" {
		return nil
	}
	s.machines[device] = machine
	s.candidates = append(s.candidates, candidate{
		machine: machine.Name,
		device:  device,
		unknown: machine.Status.InstanceStatus == nil,
		active:  ptr.Deref(machine.Status.InstanceStatus, "") == infrav1.InstanceActive,
		leaving: !owner.DeletionTimestamp.IsZero() || !machine.DeletionTimestamp.IsZero(),
		created: machine.CreationTimestamp.Time,
	})
	return nil
}

func (s *scope) isHolder(c candidate) bool {
	return c.device == s.packetCluster.Status.Endpoint.DeviceID
}

func (s *scope) situation() situation {
	e := s.packetCluster.Status.Endpoint
	out := situation{now: s.controller.Clock.Now(), holder: e.DeviceID, candidates: slices.Clone(s.candidates)}
	if e.MovedAt != nil {
		out.movedAt = e.MovedAt.Time
	}
	for i := range out.candidates {
		out.candidates[i].health = s.recollection.health[out.candidates[i].device]
	}
	return out
}

// close computes the condition, unless the steps failed, and writes it.
func (s *scope) close(ctx context.Context, err error) (ctrl.Result, error) {
	if wait := reconcile.AsWait(err); err == nil || wait != nil {
		s.report(wait)
	}
	return s.Close(ctx, err, reconcile.Jitter(s.decision.next))
}
