package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/metal/client"
)

// external deals with clusters whose endpoint is not ours to provide: the load balancer service is gone, and what is there in its place
// belongs to the user.
func (c *Controller) external(_ context.Context, s *scope) (*outcome.Wait, error) {
	if !s.packetCluster.Spec.ControlPlaneEndpoint.IsValid() {
		return &outcome.Wait{
			Reason: infrav1.LoadBalancerServiceGoneReason,
			Message: "Equinix Metal shut down its load balancers (vipManager EMLB) in June 2026: " +
				"set spec.controlPlaneEndpoint to your own load balancer, or create the cluster with vipManager CPEM",
		}, nil
	}
	s.external = true
	return nil, nil
}

// seenLately says that the cluster has its address, and that it was there not long ago.
func (c *Controller) seenLately(s *scope) bool {
	return s.wasUp() && s.packetCluster.Spec.ControlPlaneEndpoint.IsValid() && c.checked.within(s.packetCluster.UID, c.Clock.Now(), checkInterval)
}

// connect finds the API.
func (c *Controller) connect(ctx context.Context, s *scope) (wait *outcome.Wait, err error) {
	if err := c.markCredentials(ctx, s); err != nil {
		return nil, err
	}
	s.api, err = c.Access.For(ctx, s.packetCluster)
	return nil, err
}

// markCredentials makes the Secret go along when the cluster is moved to another management plane.
func (c *Controller) markCredentials(ctx context.Context, s *scope) error {
	ref := s.packetCluster.Spec.CredentialsRef
	if ref == nil {
		return nil
	}
	secret := &corev1.Secret{}
	key := ctrlclient.ObjectKey{Namespace: s.packetCluster.Namespace, Name: ref.Name}
	if err := c.Client.Get(ctx, key, secret); err != nil {
		return ctrlclient.IgnoreNotFound(err) // that it is missing is told by whoever needs it
	}
	if _, ok := secret.Labels[clusterctlv1.ClusterctlMoveLabel]; ok {
		return nil
	}
	before := secret.DeepCopy()
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	secret.Labels[clusterctlv1.ClusterctlMoveLabel] = ""
	if err := c.Client.Patch(ctx, secret, ctrlclient.MergeFrom(before)); err != nil {
		return fmt.Errorf("labelling credentials %q: %w", key, err)
	}
	return nil
}

// enableBGP sets up the project for kube-vip, once for all its clusters.
func (c *Controller) enableBGP(ctx context.Context, s *scope) (*outcome.Wait, error) {
	if s.packetCluster.Spec.VIPManager != infrav1.VIPManagerKubeVIP {
		return nil, nil
	}
	enabled, err := s.hasBGP(ctx)
	if err != nil || enabled {
		return nil, err
	}
	err = s.api.EnableBGP(ctx, s.packetCluster.Spec.ProjectID, client.BGPRequest{
		ASN: c.BGP.ASN, MD5: c.BGP.Password, DeploymentType: "local", UseCase: "kubernetes-load-balancer",
	})
	if !client.Is(err, client.Invalid) {
		return nil, err
	}
	// It is also refused to the second of two clusters that come at once.
	if enabled, askErr := s.hasBGP(ctx); askErr == nil && enabled {
		return nil, nil
	}
	return nil, err
}

func (s *scope) hasBGP(ctx context.Context) (bool, error) {
	current, err := s.api.ProjectBGP(ctx, s.packetCluster.Spec.ProjectID)
	if client.Is(err, client.NotFound) {
		return false, nil
	}
	return current.ID != "", err
}

// ensureAddress finds the cluster's address, or reserves one.
func (c *Controller) ensureAddress(ctx context.Context, s *scope) (*outcome.Wait, error) {
	all, err := s.api.ElasticAddresses(ctx, s.packetCluster.Spec.ProjectID)
	if err != nil {
		return nil, err
	}
	taken, err := c.takenByNamesakes(ctx, s)
	if err != nil {
		return nil, err
	}
	v := s.identity().choose(all, taken)
	switch {
	case v.problem != "":
		return &outcome.Wait{Reason: infrav1.AddressAmbiguousReason, Message: v.problem, After: time.Minute}, nil
	case v.address == nil && s.wasUp():
		return &outcome.Wait{
			Reason: infrav1.AddressLostReason,
			Message: fmt.Sprintf("Address %s of the running cluster is no longer in project %q: reserve it there again",
				s.packetCluster.Spec.ControlPlaneEndpoint.Host, s.packetCluster.Spec.ProjectID),
			After: time.Minute,
		}, nil
	case v.address == nil:
		return nil, c.reserve(ctx, s)
	}
	s.address, s.owned = v.address, v.owned
	c.checked.note(s.packetCluster.UID, c.Clock.Now())
	return nil, s.giveBack(ctx, v.surplus)
}

func (c *Controller) reserve(ctx context.Context, s *scope) error {
	spec := s.packetCluster.Spec
	request := client.AddressRequest{
		Type: "public_ipv4", Quantity: 1, Metro: spec.Metro, FailOnApprovalRequired: true, Tags: s.identity().Encode(),
	}
	if spec.Metro == "" {
		request.Facility = spec.Facility
	}
	address, err := s.api.ReserveAddress(ctx, spec.ProjectID, request)
	if err != nil {
		return err
	}
	s.address, s.owned = address, true
	ctrl.LoggerFrom(ctx).Info("Reserved an address", "address", address.Address)
	c.Events.Eventf(s.packetCluster, corev1.EventTypeNormal, infrav1.AddressReservedReason, "Reserved address %s", address.Address)
	return nil
}

// giveBack releases addresses that nobody uses.
func (s *scope) giveBack(ctx context.Context, addresses []client.IPReservation) error {
	for _, ip := range addresses {
		if err := s.api.DeleteAddress(ctx, ip.ID); err != nil && !client.Is(err, client.NotFound) {
			return err
		}
		ctrl.LoggerFrom(ctx).Info("Released an address", "address", ip.Address)
	}
	return nil
}

// takenByNamesakes tells which addresses clusters of the same name in other namespaces have, or may still come to ask for.
func (c *Controller) takenByNamesakes(ctx context.Context, s *scope) (func(string) bool, error) {
	list := &infrav1.PacketClusterList{}
	name := s.identity().Cluster
	if err := c.Client.List(ctx, list, ctrlclient.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
		return nil, fmt.Errorf("listing clusters named %q: %w", name, err)
	}
	var hosts []string
	for _, other := range list.Items {
		if other.Namespace != s.packetCluster.Namespace && other.Spec.ProjectID == s.packetCluster.Spec.ProjectID {
			hosts = append(hosts, other.Spec.ControlPlaneEndpoint.Host)
		}
	}
	return func(address string) bool {
		for _, host := range hosts {
			if host == address || host == "" {
				return true
			}
		}
		return false
	}, nil
}
