package machine

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/outcome"
	"github.com/drover-dev/drover/internal/metal/client"
)

// announce makes the BGP session over which kube-vip on a control plane machine announces the endpoint. It is made once. A machine without
// it is a machine all the same, so that this step never holds up the others.
func (c *Controller) announce(ctx context.Context, s *scope) (*outcome.Wait, error) {
	wanted := s.packetCluster.Spec.VIPManager == infrav1.VIPManagerKubeVIP && s.controlPlane()
	if !wanted || leaving(s.device.State) || conditions.IsTrue(s.machine, infrav1.BGPSessionReady) {
		return nil, nil
	}
	err := s.api.StartBGPSession(ctx, s.device.ID)
	s.session = &session{}
	if err == nil || client.Is(err, client.Exists) {
		return nil, nil
	}
	wait := outcome.Of("starting the BGP session", err)
	if wait == nil {
		return nil, err
	}
	s.session.problem = wait.Message
	s.again(wait.After)
	ctrl.LoggerFrom(ctx).V(2).Info("BGP session was not made", "device", s.device.ID, "error", err.Error())
	return nil, nil
}
