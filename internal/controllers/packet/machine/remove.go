package machine

import (
	"context"
	"fmt"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/metal/client"
)

// removalPoll is how often a device on its way out is looked at.
const removalPoll = 3 * time.Second

// ordered says whether there can be a device at all.
func (s *scope) ordered() bool {
	return s.deviceID() != "" || s.machine.Annotations[infrav1.ClaimAnnotation] != ""
}

// connectToDelete needs the API only if there can be something to delete there.
func (c *Controller) connectToDelete(ctx context.Context, s *scope) (wait *outcome.Wait, err error) {
	if !s.ordered() {
		return nil, nil
	}
	if s.packetCluster == nil {
		return &outcome.Wait{
			Reason: infrav1.DeletingReason,
			Message: fmt.Sprintf("The PacketCluster no longer exists, so the project of device %q is unknown: delete the device, then remove the finalizer %s",
				s.deviceID(), infrav1.MachineFinalizer),
			After: time.Minute,
		}, nil
	}
	s.api, err = c.Access.For(ctx, s.packetCluster)
	return nil, err
}

// remove deletes the recorded device and whatever else carries the machine's claim, and waits until nothing is left of them.
func (c *Controller) remove(ctx context.Context, s *scope) (*outcome.Wait, error) {
	if !s.ordered() {
		return nil, nil
	}
	left, err := c.leftovers(ctx, s)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, d := range left {
		if !leaving(d.State) {
			if err := s.api.DeleteDevice(ctx, d.ID); err != nil && !client.Is(err, client.NotFound, client.Forbidden) {
				return nil, err
			}
			ctrl.LoggerFrom(ctx).Info("Removing the device", "device", d.ID, "state", d.State)
		}
		ids = append(ids, d.ID)
	}
	if len(ids) > 0 {
		return &outcome.Wait{
			Reason:  infrav1.DeletingReason,
			Message: fmt.Sprintf("Waiting for device %s to be deprovisioned", strings.Join(ids, ", ")),
			After:   removalPoll,
		}, nil
	}
	if s.deviceID() == "" {
		return c.awaitOrder(s), nil
	}
	return nil, nil
}

// leftovers are the devices that are still there. One whose id is recorded counts even if somebody took its tags away; that it is gone is
// believed only if the API says so in so many words, or forbids to see it and does not list it either.
func (c *Controller) leftovers(ctx context.Context, s *scope) ([]client.Device, error) {
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

func (c *Controller) release(_ context.Context, s *scope) (*outcome.Wait, error) {
	controllerutil.RemoveFinalizer(s.machine, infrav1.MachineFinalizer)
	return nil, nil
}
