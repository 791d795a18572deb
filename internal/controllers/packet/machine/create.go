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
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/metal/tags"
	"github.com/drover-dev/drover/internal/metal/userdata"
)

// orderGrace is how long an order may take to succeed after its response was lost. It is longer
// than the client's timeout. The clock may have been set since the order, so it counts from when
// this process first saw the order.
const orderGrace = 45 * time.Second

// waitForBootstrap ends with an event: Cluster API sets the name of the Secret.
func waitForBootstrap() error {
	return &reconcile.Wait{
		Reason: infrav1.WaitingForBootstrapDataReason, Message: "Waiting for the bootstrap data of the Machine",
	}
}

// order orders a device for a machine that has none.
func (c *Controller) order(ctx context.Context, s *scope) error {
	if s.device != nil {
		return nil
	}
	if err := c.awaitOrder(s); err != nil {
		return err
	}
	if s.provisioning().Failures >= maxFailures {
		return s.giveUp()
	}
	if s.owner.dataSecret == "" {
		return waitForBootstrap()
	}
	order, err := c.compose(ctx, s)
	if err != nil {
		return err
	}
	if err := c.claim(ctx, s); err != nil {
		return err
	}
	return c.submit(ctx, s, order)
}

// awaitOrder holds back a second order while the first may still succeed.
func (c *Controller) awaitOrder(s *scope) error {
	ordered := s.provisioning().OrderedAt
	if ordered == nil {
		return nil
	}
	left := orderGrace - c.orders.Known(c.Clock, s.Key(), ordered.Time)
	if left <= 0 {
		return nil
	}
	return &reconcile.Wait{
		Reason:  infrav1.InstanceProvisionStartedReason,
		Message: "A device was ordered but the response was lost: searching for it before ordering again",
		After:   min(left+time.Second, 5*time.Second),
	}
}

// claim writes the claim and the time of the order before the order is sent.
func (c *Controller) claim(ctx context.Context, s *scope) error {
	if s.machine.Annotations == nil {
		s.machine.Annotations = map[string]string{}
	}
	s.machine.Annotations[infrav1.ClaimAnnotation] = s.identity().Claim
	now := s.now()
	s.provisioning().OrderedAt = &now
	c.orders.Forget(s.Key())
	s.started("")
	return s.Save(ctx)
}

// submit sends the order. Only an order that certainly failed may be repeated at once.
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

// compose returns the order.
func (c *Controller) compose(ctx context.Context, s *scope) (client.DeviceOrder, error) {
	spec := s.machine.Spec
	data, err := c.userdata(ctx, s)
	if err != nil {
		return client.DeviceOrder{}, err
	}
	keys, err := c.sshKeys(ctx, s)
	if err != nil {
		return client.DeviceOrder{}, err
	}
	order := client.DeviceOrder{
		Hostname:        s.machine.Name,
		Plan:            spec.MachineType,
		OperatingSystem: spec.OS,
		BillingCycle:    spec.BillingCycle,
		IPXEScriptURL:   spec.IPXEUrl,
		Tags:            s.tags(),
		Userdata:        data,
		SSHKeys:         keys.inline,
		ProjectSSHKeys:  keys.project,
	}
	s.placement().apply(&order)
	return order, nil
}

// tags returns the tags of the device. Without another VIP manager, a control plane machine may
// move the endpoint by itself, if metal's machines can.
func (s *scope) tags() []string {
	return tags.Device{
		Machine: s.identity(), Role: s.owner.role, Version: s.owner.version, User: s.machine.Spec.Tags,
		Endpoint: s.owner.role == roleControlPlane && s.packetCluster.Spec.VIPManager == infrav1.VIPManagerCPEM,
	}.Encode()
}

func (s *scope) placement() placement {
	domain := ""
	if s.owner != nil {
		domain = s.owner.failureDomain
	}
	m, c := s.machine.Spec, s.packetCluster.Spec
	return place(placement{m.Metro, m.Facility}, domain, placement{c.Metro, c.Facility})
}

func (c *Controller) userdata(ctx context.Context, s *scope) (string, error) {
	secret := &corev1.Secret{}
	key := ctrlclient.ObjectKey{Namespace: s.machine.Namespace, Name: s.owner.dataSecret}
	err := c.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return "", unusable(fmt.Sprintf("Secret %q with the bootstrap data not found", key.Name), time.Minute)
	}
	if err != nil {
		return "", fmt.Errorf("reading bootstrap data %q: %w", key, err)
	}
	values := map[string]string{
		userdata.KeyVersion: s.owner.version, userdata.KeyEndpoint: s.packetCluster.Spec.ControlPlaneEndpoint.Host,
	}
	if s.packetCluster.Spec.VIPManager == infrav1.VIPManagerEMLB {
		values[userdata.KeyCPEMConfig] = "emlb:///" + s.packetCluster.Spec.Metro
	}
	filled, withheld := userdata.Fill(string(secret.Data["value"]), values)
	if problem := userdata.Check(filled); problem != "" {
		return "", unusable("The bootstrap data "+problem, 5*time.Minute)
	}
	if withheld {
		c.Events.Event(s.machine, corev1.EventTypeWarning, "APIKeyWithheld",
			"The bootstrap data uses the placeholder apiKey, which stays empty: every process on the machine could read the key")
	}
	return filled, nil
}

// unusable waits until someone corrects the bootstrap data.
func unusable(problem string, after time.Duration) error {
	return &reconcile.Wait{Reason: infrav1.InvalidBootstrapDataReason, Message: problem, After: after}
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
