package vip

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/patch"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// scope is one look at one cluster.
type scope struct {
	controller *Controller
	patch      *patch.Helper

	packetCluster *infrav1.PacketCluster
	cluster       *clusterv1.Cluster
	machines      map[string]*infrav1.PacketMachine // by device
	candidates    []candidate
	recollection  *recollection

	// problem is why the address could not be moved.
	problem string
}

// open returns nil if the cluster has no address that could be moved.
func (c *Controller) open(ctx context.Context, key ctrlclient.ObjectKey) (*scope, error) {
	s := &scope{controller: c, packetCluster: &infrav1.PacketCluster{}}
	if err := c.Client.Get(ctx, key, s.packetCluster); err != nil {
		return nil, ctrlclient.IgnoreNotFound(err)
	}
	if !s.packetCluster.DeletionTimestamp.IsZero() {
		c.memory.forget(s.packetCluster.UID)
		return nil, nil
	}
	if !movable(s.packetCluster) {
		return nil, nil
	}
	var err error
	s.cluster, err = util.GetOwnerCluster(ctx, c.Client, s.packetCluster.ObjectMeta)
	if err != nil || s.cluster == nil || annotations.IsPaused(s.cluster, s.packetCluster) {
		return nil, ctrlclient.IgnoreNotFound(err)
	}
	if s.patch, err = patch.NewHelper(s.packetCluster, c.Client); err != nil {
		return nil, err
	}
	s.recollection = c.memory.of(s.packetCluster.UID)
	if err := s.loadCandidates(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func movable(c *infrav1.PacketCluster) bool {
	return c.Spec.VIPManager == infrav1.VIPManagerCPEM && c.Status.Endpoint != nil && c.Status.Endpoint.ReservationID != "" &&
		c.Status.Endpoint.Address == c.Spec.ControlPlaneEndpoint.Host
}

// loadCandidates collects the control plane machines that have a device, and forgets the health of those that are gone.
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

// close writes what was found.
func (s *scope) close(ctx context.Context) error {
	s.report()
	return s.patch.Patch(ctx, s.packetCluster, patch.WithOwnedConditions{Conditions: []string{infrav1.EndpointServed}})
}
