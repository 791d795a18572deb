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
	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/metal/client"
)

const (
	// maxFailures is how many devices may fail before they were ever up until the machine is left to the user.
	maxFailures = 3
	// afterFailure grows with each of them.
	afterFailure = 20 * time.Second
)

func (c *Controller) awaitCluster(_ context.Context, s *scope) (*outcome.Wait, error) {
	switch {
	case s.packetCluster == nil:
		return &outcome.Wait{
			Reason:  infrav1.WaitingForClusterInfrastructureReason,
			Message: fmt.Sprintf("Waiting for PacketCluster %q to be created", s.cluster.Spec.InfrastructureRef.Name),
			After:   time.Minute,
		}, nil
	case s.deviceID() == "" && !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return &outcome.Wait{
			Reason:  infrav1.WaitingForClusterInfrastructureReason,
			Message: fmt.Sprintf("Waiting for PacketCluster %q: see its condition %s", s.packetCluster.Name, infrav1.NetworkInfrastructureReady),
		}, nil
	}
	return nil, nil
}

func (c *Controller) connect(ctx context.Context, s *scope) (wait *outcome.Wait, err error) {
	// Waiting for userdata needs no API, and there is nothing to look for before the first order.
	if s.deviceID() == "" && s.machine.Annotations[infrav1.ClaimAnnotation] == "" && s.owner.Spec.Bootstrap.DataSecretName == nil {
		return waitForBootstrap, nil
	}
	s.api, err = c.Access.For(ctx, s.packetCluster)
	return nil, err
}

// find looks for the machine's device: by its id if that was recorded, else, or if there is no device of that id, by tags.
func (c *Controller) find(ctx context.Context, s *scope) (*outcome.Wait, error) {
	id := s.deviceID()
	if id == "" {
		return nil, c.search(ctx, s)
	}
	device, err := s.api.Device(ctx, id)
	if err == nil && device.State != string(infrav1.InstanceDeleted) {
		s.device = device
		return nil, nil
	}
	// "Not authorized" is also said of a device that failed and was taken away, and by limiters of healthy ones. The project's list tells.
	if err != nil && !client.Is(err, client.NotFound, client.Forbidden) {
		return nil, err
	}
	if s.wasUp() {
		err = c.confirm(ctx, s, id)
	} else {
		err = c.search(ctx, s)
	}
	if err != nil || s.device != nil {
		return nil, err
	}
	return c.mourn(s, id), nil
}

// confirm looks for the very device that the node runs on; no other one can take its place.
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

// mourn decides what a lost device means: a new order if nothing ever ran on it, else a condition for a MachineHealthCheck to act on.
func (c *Controller) mourn(s *scope, id string) *outcome.Wait {
	s.gone = id
	if s.wasUp() {
		return &outcome.Wait{
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
	return &outcome.Wait{
		Reason:  infrav1.InstanceProvisionFailedReason,
		Message: fmt.Sprintf("Device %q failed to provision (failure %d of %d); another will be ordered", id, p.Failures, maxFailures),
		After:   afterFailure * time.Duration(p.Failures),
	}
}

// giveUp ends the orders for this machine. There is no time to look again: another Machine is needed.
func (s *scope) giveUp() *outcome.Wait {
	s.exhausted = true
	return &outcome.Wait{
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

// search finds the device by tags and records it. Should there be several, which takes an order that was carried out long after its
// answer was lost, the others are removed.
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

// choose picks the recorded device, else the oldest; devices on their way out don't count.
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

// settle looks closer at a device: is it where it should be, did it fail, and, when it is up for the first time, is it the only one.
func (c *Controller) settle(ctx context.Context, s *scope) (*outcome.Wait, error) {
	s.misplaced = s.placement().misplaced(s.device)
	if s.device.State == string(infrav1.InstanceFailed) || leaving(s.device.State) && !s.wasUp() {
		s.cause = s.findCause(ctx)
	}
	switch {
	case s.device.State == string(infrav1.InstanceFailed) && !s.wasUp():
		return c.discard(ctx, s)
	case s.device.State == string(infrav1.InstanceActive) && !s.wasUp():
		return nil, c.search(ctx, s)
	}
	return nil, nil
}

// discard removes a device that failed to provision. That it is gone is seen by find, which then lets another one be ordered.
func (c *Controller) discard(ctx context.Context, s *scope) (*outcome.Wait, error) {
	if s.provisioning().Failures+1 >= maxFailures {
		s.exhausted = true
		return nil, nil
	}
	if err := s.api.DeleteDevice(ctx, s.device.ID); err != nil && !client.Is(err, client.NotFound) {
		return nil, err
	}
	c.Events.Eventf(s.machine, corev1.EventTypeWarning, infrav1.InstanceProvisionFailedReason, "Deleted device %q, which failed to provision%s", s.device.ID, because(s.cause))
	return &outcome.Wait{Reason: infrav1.InstanceProvisionFailedReason, Message: replacing(s.device.ID, s.cause), After: removalPoll}, nil
}

// replacing says what becomes of a device that failed before it was ever up.
func replacing(id, cause string) string {
	return fmt.Sprintf("Device %q failed to provision%s and is being deleted; another will be ordered", id, because(cause))
}
