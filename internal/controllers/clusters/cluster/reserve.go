package cluster

import (
	"context"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/clusters/capacity"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// reserve makes a new Cluster wait until there are machines for all of it. Existing ones continue
// without a request: their machines wait one by one.
func (c *Controller) reserve(ctx context.Context, s *scope) error {
	if s.live.cluster != nil {
		return nil
	}
	shortage, err := c.Capacity.Admit(ctx, s.config)
	if err != nil {
		return c.afterUnknownCapacity(ctx, s, err)
	}
	if shortage == nil {
		return nil
	}
	return &reconcile.Wait{Reason: shortage.Reason(), Message: text.Truncate(shortage.Message()), After: capacity.Interval}
}

// afterUnknownCapacity lets a Cluster continue if nobody knows whether there are machines, unless
// it waits already.
func (c *Controller) afterUnknownCapacity(ctx context.Context, s *scope, err error) error {
	if !capacity.Keeps(ctx, s.cluster, err) {
		return nil
	}
	return &reconcile.Wait{Reason: anywherev1.WaitingForCapacityReason, Message: "Waiting for the Packet API to report which machines are available", After: capacity.Interval}
}
