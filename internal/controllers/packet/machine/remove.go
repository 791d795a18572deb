package machine

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/client"
)

// removalPoll is how often the state of a device that is being deprovisioned is read.
const removalPoll = 3 * time.Second

// maxNamed is how many devices a message names.
const maxNamed = 3

// ordered reports whether a device may exist.
func (s *scope) ordered() bool {
	return s.deviceID() != "" || s.machine.Annotations[infrav1.ClaimAnnotation] != ""
}

// connectToDelete requires the API only if there may be a device to delete.
func (c *Controller) connectToDelete(ctx context.Context, s *scope) (err error) {
	if !s.ordered() {
		return nil
	}
	if s.packetCluster == nil {
		return &reconcile.Wait{
			Reason: infrav1.DeletingReason,
			Message: fmt.Sprintf("The PacketCluster no longer exists, so the project of device %q is unknown: delete the device, then remove the finalizer %s",
				s.deviceID(), infrav1.MachineFinalizer),
			After: time.Minute,
		}
	}
	s.api, err = c.Access.For(ctx, s.packetCluster)
	return err
}

// remove deletes the recorded device and all others with the machine's claim, and waits until they
// are deprovisioned.
func (c *Controller) remove(ctx context.Context, s *scope) error {
	if !s.ordered() {
		return nil
	}
	var order error // An order without a known outcome counts from now.
	if s.deviceID() == "" {
		order = c.awaitOrder(s)
	}
	left, err := c.remaining(ctx, s)
	if err != nil {
		return err
	}
	var ids []string
	for _, d := range left {
		if !leaving(d.State) {
			if err := s.api.DeleteDevice(ctx, d.ID); err != nil && !client.Is(err, client.NotFound, client.Forbidden) {
				return err
			}
			ctrl.LoggerFrom(ctx).Info("Deleting the device", "device", d.ID, "state", d.State)
		}
		ids = append(ids, d.ID)
	}
	if len(ids) > 0 {
		return &reconcile.Wait{
			Reason:  infrav1.DeletingReason,
			Message: fmt.Sprintf("Waiting for device %s to be deprovisioned", text.FirstN(ids, maxNamed)),
			After:   removalPoll,
		}
	}
	return order
}

// remaining returns the devices that still exist. The recorded device counts even if someone
// removed its tags. It counts as deprovisioned only if the API says so explicitly, or forbids
// access and does not list it either.
func (c *Controller) remaining(ctx context.Context, s *scope) ([]client.Device, error) {
	own, err := s.ownDevices(ctx)
	if err != nil {
		return nil, err
	}
	var left []client.Device
	recorded := s.deviceID()
	for _, d := range own {
		if d.State != string(infrav1.InstanceDeleted) {
			left = append(left, d)
		}
		if d.ID == recorded {
			recorded = ""
		}
	}
	if recorded == "" {
		return left, nil
	}
	d, err := s.api.Device(ctx, recorded)
	switch {
	case client.Is(err, client.NotFound, client.Forbidden):
		return left, nil
	case err != nil:
		return nil, err
	case d.State != string(infrav1.InstanceDeleted):
		left = append(left, *d)
	}
	return left, nil
}

func (c *Controller) release(_ context.Context, s *scope) error {
	controllerutil.RemoveFinalizer(s.machine, infrav1.MachineFinalizer)
	c.orders.Forget(s.Key())
	return nil
}
