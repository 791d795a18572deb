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
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/client"
)

// checkExternal handles clusters whose endpoint the user provides, since the load balancer service
// was shut down.
func (c *Controller) checkExternal(_ context.Context, s *scope) error {
	if !s.packetCluster.Spec.ControlPlaneEndpoint.IsValid() {
		return &reconcile.Wait{
			Reason: infrav1.LoadBalancerServiceGoneReason,
			Message: "Equinix Metal shut down its load balancers (vipManager EMLB) in June 2026: " +
				"set spec.controlPlaneEndpoint to your own load balancer, or create the cluster with vipManager CPEM",
		}
	}
	s.external = true
	return nil
}

// checkedRecently reports whether the cluster has its address and the API confirmed it recently.
func (c *Controller) checkedRecently(s *scope) bool {
	return s.wasUp() && s.packetCluster.Spec.ControlPlaneEndpoint.IsValid() &&
		c.checked.within(s.packetCluster.UID, c.Clock.Now(), checkInterval)
}

func (c *Controller) connect(ctx context.Context, s *scope) (err error) {
	if err := c.labelCredentials(ctx, s); err != nil {
		return err
	}
	s.api, err = c.Access.For(ctx, s.packetCluster)
	return err
}

// labelCredentials makes clusterctl move the Secret along with the cluster.
func (c *Controller) labelCredentials(ctx context.Context, s *scope) error {
	ref := s.packetCluster.Spec.CredentialsRef
	if ref == nil {
		return nil
	}
	secret := &corev1.Secret{}
	key := ctrlclient.ObjectKey{Namespace: s.packetCluster.Namespace, Name: ref.Name}
	if err := c.Client.Get(ctx, key, secret); err != nil {
		return ctrlclient.IgnoreNotFound(err) // connect reports a missing Secret
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
		return fmt.Errorf("labeling credentials %q: %w", key, err)
	}
	return nil
}

// enableBGP enables BGP in the project for kube-vip, once for all its clusters.
func (c *Controller) enableBGP(ctx context.Context, s *scope) error {
	if s.packetCluster.Spec.VIPManager != infrav1.VIPManagerKubeVIP {
		return nil
	}
	enabled, err := s.hasBGP(ctx)
	if err != nil || enabled {
		return err
	}
	err = s.api.EnableBGP(ctx, s.packetCluster.Spec.ProjectID, client.BGPRequest{
		ASN: c.BGP.ASN, MD5: c.BGP.Password, DeploymentType: "local", UseCase: "kubernetes-load-balancer",
	})
	if !client.Is(err, client.Invalid) {
		return err
	}
	// The API also rejects the second of two simultaneous requests.
	if enabled, readErr := s.hasBGP(ctx); readErr == nil && enabled {
		return nil
	}
	return err
}

func (s *scope) hasBGP(ctx context.Context) (bool, error) {
	current, err := s.api.ProjectBGP(ctx, s.packetCluster.Spec.ProjectID)
	if client.Is(err, client.NotFound) {
		return false, nil
	}
	return current.ID != "", err
}

// ensureAddress finds the cluster's address, or reserves one.
func (c *Controller) ensureAddress(ctx context.Context, s *scope) error {
	all, err := s.api.ElasticAddresses(ctx, s.packetCluster.Spec.ProjectID)
	if err != nil {
		return err
	}
	taken, err := c.takenByNamesakes(ctx, s)
	if err != nil {
		return err
	}
	v := s.identity().choose(all, taken)
	switch {
	case v.problem != "":
		return &reconcile.Wait{Reason: infrav1.AddressAmbiguousReason, Message: v.problem, After: time.Minute}
	case v.address == nil && s.wasUp():
		return &reconcile.Wait{
			Reason: infrav1.AddressLostReason,
			Message: fmt.Sprintf("Address %s of the running cluster is no longer in project %q: reserve it there again",
				s.packetCluster.Spec.ControlPlaneEndpoint.Host, s.packetCluster.Spec.ProjectID),
			After: time.Minute,
		}
	case v.address == nil:
		return c.reserve(ctx, s)
	}
	s.address, s.owned = v.address, v.owned
	c.checked.note(s.packetCluster.UID, c.Clock.Now())
	return s.releaseAll(ctx, v.surplus)
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

// releaseAll releases addresses that no device uses.
func (s *scope) releaseAll(ctx context.Context, addresses []client.IPReservation) error {
	for _, ip := range addresses {
		if err := s.api.DeleteAddress(ctx, ip.ID); err != nil && !client.Is(err, client.NotFound) {
			return err
		}
		ctrl.LoggerFrom(ctx).Info("Released an address", "address", ip.Address)
	}
	return nil
}

// takenByNamesakes returns a function that reports whether a cluster of the same name in another
// namespace has an address, or may still adopt it.
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
