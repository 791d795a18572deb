package machine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/client"
)

const (
	// maxFailures is how many devices of a machine may fail before any was active.
	maxFailures = 3
	// afterFailure is the delay before the next order, times the number of failures.
	afterFailure = 20 * time.Second
)

func (c *Controller) awaitCluster(_ context.Context, s *scope) error {
	switch {
	case s.packetCluster == nil:
		return &reconcile.Wait{
			Reason:  infrav1.WaitingForClusterInfrastructureReason,
			Message: fmt.Sprintf("Waiting for PacketCluster %q to be created", s.cluster.Spec.InfrastructureRef.Name),
			After:   time.Minute,
		}
	case s.deviceID() == "" && !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return &reconcile.Wait{
			Reason:  infrav1.WaitingForClusterInfrastructureReason,
			Message: fmt.Sprintf("Waiting for PacketCluster %q: see its condition %s", s.packetCluster.Name, infrav1.NetworkInfrastructureReady),
		}
	}
	return nil
}

func (c *Controller) connect(ctx context.Context, s *scope) (err error) {
	// Waiting for bootstrap data requires no API, and before the first order there is no device to
	// find.
	if s.deviceID() == "" && s.machine.Annotations[infrav1.ClaimAnnotation] == "" && s.owner.dataSecret == "" {
		return waitForBootstrap()
	}
	s.api, err = c.Access.For(ctx, s.packetCluster)
	return err
}

// find finds the machine's device by its recorded ID, otherwise by its tags.
func (c *Controller) find(ctx context.Context, s *scope) error {
	id := s.deviceID()
	if id == "" {
		return c.search(ctx, s)
	}
	device, err := s.api.Device(ctx, id)
	if err == nil && device.State != string(infrav1.InstanceDeleted) {
		s.device = device
		return nil
	}
	// The API answers "forbidden" also for a device that failed and was removed, and rate limiters
	// do so for healthy ones. Only the project's list decides.
	if err != nil && !client.Is(err, client.NotFound, client.Forbidden) {
		return err
	}
	if s.wasUp() {
		err = c.confirm(ctx, s, id)
	} else {
		err = c.search(ctx, s)
	}
	if err != nil || s.device != nil {
		return err
	}
	return c.handleLostDevice(s, id)
}

// confirm searches for the device that the node runs on; no other device can replace it.
func (c *Controller) confirm(ctx context.Context, s *scope, id string) error {
	own, err := s.ownDevices(ctx)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(own, func(d client.Device) bool { return d.ID == id }); i >= 0 {
		s.device = &own[i]
	}
	return nil
}

// handleLostDevice waits for another order if no node ever ran on the device. Otherwise it leaves
// the machine to the user or a MachineHealthCheck.
func (c *Controller) handleLostDevice(s *scope, id string) *reconcile.Wait {
	s.lost = id
	if s.wasUp() {
		return &reconcile.Wait{
			Reason:  infrav1.InstanceNotFoundReason,
			Message: fmt.Sprintf("Device %q no longer exists: delete the Machine, or let a MachineHealthCheck replace it", id),
			After:   c.PollInterval,
		}
	}
	p := s.provisioning()
	p.Failures++
	p.OrderedAt = nil
	s.machine.Spec.ProviderID = nil
	c.Events.Eventf(s.machine, corev1.EventTypeWarning, infrav1.InstanceProvisionFailedReason, "Device %q disappeared before it was active", id)
	if p.Failures >= maxFailures {
		return s.giveUp()
	}
	return &reconcile.Wait{
		Reason:  infrav1.InstanceProvisionFailedReason,
		Message: fmt.Sprintf("Device %q failed to provision (failure %d of %d); another will be ordered", id, p.Failures, maxFailures),
		After:   afterFailure * time.Duration(p.Failures),
	}
}

// giveUp ends the orders for this machine. Only another Machine helps, so there is no retry.
func (s *scope) giveUp() *reconcile.Wait {
	s.exhausted = true
	return &reconcile.Wait{
		Reason:  infrav1.InstanceProvisionFailedReason,
		Message: fmt.Sprintf("Provisioning failed %d times: delete the Machine, or let a MachineHealthCheck replace it", maxFailures),
	}
}

func (s *scope) provisioning() *infrav1.ProvisioningStatus {
	if s.machine.Status.Provisioning == nil {
		s.machine.Status.Provisioning = &infrav1.ProvisioningStatus{}
	}
	return s.machine.Status.Provisioning
}

// search finds the device by its tags and records it. If there are several, because an order
// succeeded long after its response was lost, it deletes the others.
func (c *Controller) search(ctx context.Context, s *scope) error {
	devices, err := s.ownDevices(ctx)
	if err != nil {
		return err
	}
	keep, extra := choose(devices, s.deviceID())
	if keep == nil {
		return nil
	}
	if s.deviceID() != keep.ID {
		ctrl.LoggerFrom(ctx).Info("Found the device by its tags", "device", keep.ID)
	}
	s.record(keep)
	for _, d := range extra {
		c.Events.Eventf(s.machine, corev1.EventTypeWarning, "DuplicateDevice", "Deleted device %q because the machine already has %q", d.ID, keep.ID)
		if err := s.api.DeleteDevice(ctx, d.ID); err != nil && !client.Is(err, client.NotFound) {
			return err
		}
	}
	return nil
}

// ownDevices lists the devices with the machine's tags, in the current or the former form.
func (s *scope) ownDevices(ctx context.Context) ([]client.Device, error) {
	i := s.identity()
	var own []client.Device
	for _, tag := range i.Queries() {
		found, err := s.api.DevicesWithTag(ctx, s.packetCluster.Spec.ProjectID, tag)
		if err != nil {
			return nil, err
		}
		own = append(own, slices.DeleteFunc(found, func(d client.Device) bool { return !i.Owns(d.Tags) })...)
	}
	slices.SortFunc(own, byAge)
	return slices.CompactFunc(own, func(a, b client.Device) bool { return a.ID == b.ID }), nil
}

// choose returns the recorded device, otherwise the oldest, and all others. Devices that are being
// deprovisioned don't count.
func choose(devices []client.Device, recorded string) (keep *client.Device, extra []client.Device) {
	alive := slices.DeleteFunc(slices.Clone(devices), func(d client.Device) bool { return leaving(d.State) })
	if len(alive) == 0 {
		return nil, nil
	}
	chosen := max(0, slices.IndexFunc(alive, func(d client.Device) bool { return d.ID == recorded }))
	return &alive[chosen], slices.Delete(slices.Clone(alive), chosen, chosen+1)
}

func byAge(a, b client.Device) int {
	return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// checkDevice checks the location of the device, whether it failed, and, when it becomes active for
// the first time, whether it is the only one.
func (c *Controller) checkDevice(ctx context.Context, s *scope) error {
	s.misplaced = s.placement().misplaced(s.device)
	if s.device.State == string(infrav1.InstanceFailed) || leaving(s.device.State) && !s.wasUp() {
		s.cause = s.findCause(ctx)
	}
	switch {
	case s.device.State == string(infrav1.InstanceFailed) && !s.wasUp():
		return c.discard(ctx, s)
	case s.device.State == string(infrav1.InstanceActive) && !s.wasUp():
		return c.search(ctx, s)
	}
	return nil
}

// discard deletes a device that failed to provision. When it no longer exists, find allows another
// order.
func (c *Controller) discard(ctx context.Context, s *scope) error {
	if s.provisioning().Failures+1 >= maxFailures {
		s.exhausted = true
		return nil
	}
	if err := s.api.DeleteDevice(ctx, s.device.ID); err != nil && !client.Is(err, client.NotFound) {
		return err
	}
	c.Events.Eventf(s.machine, corev1.EventTypeWarning, infrav1.InstanceProvisionFailedReason,
		"Deleted device %q, which failed to provision%s", s.device.ID, because(s.cause))
	return &reconcile.Wait{Reason: infrav1.InstanceProvisionFailedReason, Message: replacing(s.device.ID, s.cause), After: removalPoll}
}

// replacing is the message about a device that failed before it was active.
func replacing(id, cause string) string {
	return fmt.Sprintf("Device %q failed to provision%s and is being deleted; another will be ordered", id, because(cause))
}
