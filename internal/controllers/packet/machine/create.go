package machine

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/tags"
	"github.com/drover-dev/drover/internal/metal/userdata"
)

// orderGrace is how long an order without an answer may still be carried out. It is longer than the client waits for an answer.
const orderGrace = 45 * time.Second

// waitForBootstrap ends with an event: Cluster API sets the Secret's name.
var waitForBootstrap = &outcome.Wait{Reason: infrav1.WaitingForBootstrapDataReason, Message: "Waiting for the bootstrap data of the Machine"}

// order gets a device for a machine that has none.
func (c *Controller) order(ctx context.Context, s *scope) (*outcome.Wait, error) {
	if s.device != nil {
		return nil, nil
	}
	if wait := c.awaitOrder(s); wait != nil {
		return wait, nil
	}
	if s.provisioning().Failures >= maxFailures {
		return s.giveUp(), nil
	}
	if s.owner.Spec.Bootstrap.DataSecretName == nil {
		return waitForBootstrap, nil
	}
	order, wait, err := c.compose(ctx, s)
	if wait != nil || err != nil {
		return wait, err
	}
	if err := c.claim(ctx, s); err != nil {
		return nil, err
	}
	return nil, c.submit(ctx, s, order)
}

// awaitOrder holds back a second order as long as the first may still be carried out.
func (c *Controller) awaitOrder(s *scope) *outcome.Wait {
	ordered := s.provisioning().OrderedAt
	if ordered == nil {
		return nil
	}
	left := orderGrace - c.Clock.Since(ordered.Time)
	if left <= 0 {
		return nil
	}
	return &outcome.Wait{
		Reason:  infrav1.InstanceProvisionStartedReason,
		Message: "A device was ordered but the response was lost: searching for it before ordering again",
		After:   min(left+time.Second, 5*time.Second),
	}
}

// claim makes the order known before it is sent.
func (c *Controller) claim(ctx context.Context, s *scope) error {
	if s.machine.Annotations == nil {
		s.machine.Annotations = map[string]string{}
	}
	s.machine.Annotations[infrav1.ClaimAnnotation] = s.identity().Claim
	now := s.now()
	s.provisioning().OrderedAt = &now
	s.started("")
	return s.Flush(ctx)
}

// submit sends the order. Only an order that certainly was not carried out may be repeated at once.
func (c *Controller) submit(ctx context.Context, s *scope, order client.DeviceOrder) error {
	device, err := send(ctx, s.api, s.packetCluster.Spec.ProjectID, order, reservations(s.machine.Spec.HardwareReservationID))
	if err != nil {
		if !client.Is(err, client.UnknownOutcome) {
			s.provisioning().OrderedAt = nil
		}
		return err
	}
	s.record(device)
	ctrl.LoggerFrom(ctx).Info("Ordered a device", "device", device.ID, "plan", order.Plan)
	c.Events.Eventf(s.machine, corev1.EventTypeNormal, infrav1.InstanceProvisionStartedReason, "Ordered device %q", device.ID)
	return nil
}

// compose makes the order.
func (c *Controller) compose(ctx context.Context, s *scope) (client.DeviceOrder, *outcome.Wait, error) {
	spec := s.machine.Spec
	data, wait, err := c.userdata(ctx, s)
	if wait != nil || err != nil {
		return client.DeviceOrder{}, wait, err
	}
	keys, err := c.sshKeys(ctx, s)
	if err != nil {
		return client.DeviceOrder{}, nil, err
	}
	role := roleWorker
	if s.controlPlane() {
		role = roleControlPlane
	}
	order := client.DeviceOrder{
		Hostname:        s.machine.Name,
		Plan:            spec.MachineType,
		OperatingSystem: spec.OS,
		BillingCycle:    spec.BillingCycle,
		IPXEScriptURL:   spec.IPXEUrl,
		Tags:            tags.Device{Machine: s.identity(), Role: role, Version: s.owner.Spec.Version, User: spec.Tags}.Encode(),
		Userdata:        data,
		SSHKeys:         keys.inline,
		ProjectSSHKeys:  keys.project,
	}
	s.placement().apply(&order)
	return order, nil, nil
}

func (s *scope) placement() placement {
	domain := ""
	if s.owner != nil {
		domain = s.owner.Spec.FailureDomain
	}
	m, c := s.machine.Spec, s.packetCluster.Spec
	return place(placement{m.Metro, m.Facility}, domain, placement{c.Metro, c.Facility})
}

func (c *Controller) userdata(ctx context.Context, s *scope) (string, *outcome.Wait, error) {
	secret := &corev1.Secret{}
	key := ctrlclient.ObjectKey{Namespace: s.machine.Namespace, Name: *s.owner.Spec.Bootstrap.DataSecretName}
	err := c.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return "", unusable(fmt.Sprintf("Secret %q with the bootstrap data not found", key.Name), time.Minute), nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("reading bootstrap data %q: %w", key, err)
	}
	values := map[string]string{userdata.KeyVersion: s.owner.Spec.Version, userdata.KeyEndpoint: s.packetCluster.Spec.ControlPlaneEndpoint.Host}
	if s.packetCluster.Spec.VIPManager == infrav1.VIPManagerEMLB {
		values[userdata.KeyCPEMConfig] = "emlb:///" + s.packetCluster.Spec.Metro
	}
	rendered, withheld := userdata.Fill(string(secret.Data["value"]), values)
	if problem := userdata.Check(rendered); problem != "" {
		return "", unusable("The bootstrap data "+problem, 5*time.Minute), nil
	}
	if withheld {
		c.Events.Event(s.machine, corev1.EventTypeWarning, "APIKeyWithheld",
			"The bootstrap data uses the placeholder apiKey, which stays empty: every process on the machine could read the key")
	}
	return rendered, nil, nil
}

// unusable is a wait for somebody to correct the userdata.
func unusable(problem string, after time.Duration) *outcome.Wait {
	return &outcome.Wait{Reason: infrav1.InvalidBootstrapDataReason, Message: problem, After: after}
}

func (c *Controller) sshKeys(ctx context.Context, s *scope) (keys, error) {
	field := s.machine.Spec.SSHKeys
	var known []client.SSHKey
	if needLabels(field) {
		var err error
		if known, err = s.api.ProjectKeys(ctx, s.packetCluster.Spec.ProjectID); err != nil {
			return keys{}, err
		}
	}
	k := sortKeys(field, s.machine.Name, known)
	if len(k.unknown) > 0 {
		c.Events.Eventf(s.machine, corev1.EventTypeWarning, "SSHKeyNotFound",
			"The project has no SSH keys labeled %s", strings.Join(k.unknown, ", "))
	}
	return k, nil
}
