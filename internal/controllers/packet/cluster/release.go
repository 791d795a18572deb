package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/metal/client"
)

// awaitMachines keeps the address, and the way to the API, until all machines are gone.
func (c *Controller) awaitMachines(ctx context.Context, s *scope) (*outcome.Wait, error) {
	list := &infrav1.PacketMachineList{}
	name := s.identity().Cluster
	err := c.Client.List(ctx, list, ctrlclient.InNamespace(s.packetCluster.Namespace), ctrlclient.MatchingLabels{clusterv1.ClusterNameLabel: name})
	if err != nil {
		return nil, fmt.Errorf("listing machines of cluster %q: %w", name, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return &outcome.Wait{
		Reason:  infrav1.DeletingReason,
		Message: fmt.Sprintf("Waiting for PacketMachines to be deleted (%d left)", len(list.Items)),
		After:   5 * time.Second,
	}, nil
}

// release gives back every address that was reserved for this cluster, unless the user wants to keep them.
func (c *Controller) release(ctx context.Context, s *scope) (*outcome.Wait, error) {
	spec := s.packetCluster.Spec
	if spec.VIPManager == infrav1.VIPManagerEMLB || spec.AddressReclaimPolicy == infrav1.AddressRetain {
		return nil, nil
	}
	var err error
	if s.api, err = c.Access.For(ctx, s.packetCluster); err != nil {
		if _, missing := access.IsProblem(err); missing && s.packetCluster.Status.Endpoint == nil {
			return nil, nil // without credentials none can have been reserved
		}
		return nil, err
	}
	all, err := s.api.ElasticAddresses(ctx, spec.ProjectID)
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(all, func(ip client.IPReservation) bool { return !s.releases(ip) })
	for _, ip := range own {
		for _, a := range ip.Assignments {
			if err := s.api.DeleteAddress(ctx, a.Identity()); err != nil && !client.Is(err, client.NotFound) {
				return nil, err
			}
		}
	}
	return nil, s.giveBack(ctx, own)
}

// releases says whether the address was reserved for this cluster: its tags say so, or it was recorded as such.
func (s *scope) releases(ip client.IPReservation) bool {
	i := s.identity()
	if i.Owns(ip.Tags) {
		return true
	}
	recorded := s.packetCluster.Status.Endpoint
	return recorded != nil && recorded.Owned && recorded.ReservationID == ip.ID && i.named(&ip).problem == ""
}

func (c *Controller) finish(_ context.Context, s *scope) (*outcome.Wait, error) {
	c.checked.forget(s.packetCluster.UID)
	controllerutil.RemoveFinalizer(s.packetCluster, infrav1.ClusterFinalizer)
	return nil, nil
}
