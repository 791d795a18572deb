package cluster

import (
	"context"
	"fmt"
	"time"

	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/access"
)

// deleteWithCluster deletes etcd once the control plane of a cluster that is being deleted is gone:
// Cluster API deletes the PacketCluster after that, and the PacketCluster waits for etcd, so that
// project and credentials of the machines stay known.
func (c *Controller) deleteWithCluster(ctx context.Context, s *scope) error {
	if s.packetCluster == nil || s.packetCluster.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := ctrlclient.IgnoreNotFound(c.Client.Delete(ctx, s.etcd)); err != nil {
		return fmt.Errorf("deleting EtcdadmCluster %q: %w", s.etcd.Name, err)
	}
	return reconcile.Stop
}

// awaitControlPlane keeps etcd while API servers need it.
func (c *Controller) awaitControlPlane(_ context.Context, s *scope) error {
	if s.cluster == nil || s.packetCluster == nil || !s.packetCluster.DeletionTimestamp.IsZero() {
		return nil
	}
	return &reconcile.Wait{
		Reason: etcdv1.DeletingReason, After: time.Minute,
		Message: fmt.Sprintf("Cluster %q uses this etcd: delete the Cluster, and etcd is deleted after its control plane", s.cluster.Name),
	}
}

// deleteMachines deletes all machines and waits until they are gone.
func (c *Controller) deleteMachines(ctx context.Context, s *scope) error {
	if err := s.listMachines(ctx); err != nil {
		return err
	}
	for i := range s.machines {
		if err := c.deleteMachine(ctx, s, s.machines[i].Name); err != nil {
			return err
		}
	}
	if n := len(s.machines); n > 0 {
		return &reconcile.Wait{Reason: etcdv1.DeletingReason, Message: fmt.Sprintf("Waiting for PacketMachines to be deleted (%d left)", n), After: 3 * time.Second}
	}
	return nil
}

// releaseAddresses releases all addresses. Without a PacketCluster, none was ever reserved.
func (c *Controller) releaseAddresses(ctx context.Context, s *scope) error {
	if s.packetCluster == nil {
		return nil
	}
	if err := s.connect(ctx); err != nil {
		if _, missing := access.IsProblem(err); missing && s.etcd.Status.Endpoints == "" {
			return nil
		}
		return err
	}
	if err := s.readAddresses(ctx); err != nil {
		return err
	}
	for at := range s.addresses {
		if err := s.giveBack(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) release(_ context.Context, s *scope) error {
	controllerutil.RemoveFinalizer(s.etcd, etcdv1.Finalizer)
	c.unhealthy.Forget(s.Key())
	return nil
}
