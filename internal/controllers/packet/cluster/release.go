package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/metal/client"
)

// awaitMachines keeps the address and the credentials until all machines are deleted.
func (c *Controller) awaitMachines(ctx context.Context, s *scope) error {
	list := &infrav1.PacketMachineList{}
	name := s.identity().Cluster
	err := c.Client.List(ctx, list, ctrlclient.InNamespace(s.packetCluster.Namespace), ctrlclient.MatchingLabels{clusterv1.ClusterNameLabel: name})
	if err != nil {
		return fmt.Errorf("listing machines of cluster %q: %w", name, err)
	}
	if len(list.Items) == 0 {
		return c.awaitEtcd(ctx, s)
	}
	return &reconcile.Wait{
		Reason:  infrav1.DeletingReason,
		Message: fmt.Sprintf("Waiting for PacketMachines to be deleted (%d left)", len(list.Items)),
		After:   5 * time.Second,
	}
}

// awaitEtcd waits until external etcd has released its addresses, for which it needs the
// credentials.
func (c *Controller) awaitEtcd(ctx context.Context, s *scope) error {
	list := &etcdv1.EtcdadmClusterList{}
	name := s.identity().Cluster
	err := c.Client.List(ctx, list, ctrlclient.InNamespace(s.packetCluster.Namespace), ctrlclient.MatchingLabels{clusterv1.ClusterNameLabel: name})
	if err != nil {
		return fmt.Errorf("listing external etcd of cluster %q: %w", name, err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	return &reconcile.Wait{
		Reason: infrav1.DeletingReason, Message: fmt.Sprintf("Waiting for EtcdadmCluster %q to be deleted", list.Items[0].Name), After: 5 * time.Second,
	}
}

// release releases every address that was reserved for this cluster, unless the user retains them.
func (c *Controller) release(ctx context.Context, s *scope) error {
	spec := s.packetCluster.Spec
	if spec.VIPManager == infrav1.VIPManagerEMLB || spec.AddressReclaimPolicy == infrav1.AddressRetain {
		return nil
	}
	var err error
	if s.api, err = c.Access.For(ctx, s.packetCluster); err != nil {
		if _, missing := access.IsProblem(err); missing && s.packetCluster.Status.Endpoint == nil {
			return nil // without credentials, no address can have been reserved
		}
		return err
	}
	all, err := s.api.ElasticAddresses(ctx, spec.ProjectID)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(all, func(ip client.IPReservation) bool { return !s.releases(ip) })
	for _, ip := range own {
		for _, a := range ip.Assignments {
			if err := s.api.DeleteAddress(ctx, a.Identity()); err != nil && !client.Is(err, client.NotFound) {
				return err
			}
		}
	}
	return s.releaseAll(ctx, own)
}

// releases reports whether the address was reserved for this cluster, by its tags or by the status.
// One that lacks the tags is released only if no device has it: the cluster's own are deleted by
// now.
func (s *scope) releases(ip client.IPReservation) bool {
	i := s.identity()
	if i.Owns(ip.Tags) {
		return true
	}
	recorded := s.packetCluster.Status.Endpoint
	return recorded != nil && recorded.Owned && recorded.ReservationID == ip.ID && i.named(&ip).problem == "" && len(ip.Assignments) == 0
}

func (c *Controller) finish(_ context.Context, s *scope) error {
	c.checked.forget(s.packetCluster.UID)
	controllerutil.RemoveFinalizer(s.packetCluster, infrav1.ClusterFinalizer)
	return nil
}
