package machine

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/packet/failure"
	"github.com/drover-dev/drover/internal/metal/client"
)

const startingSession = "starting the BGP session"

// startSession starts the BGP session with which kube-vip on a control plane machine announces the
// endpoint, once. It never holds up the other steps, which don't depend on the session.
func (c *Controller) startSession(ctx context.Context, s *scope) error {
	wanted := s.packetCluster.Spec.VIPManager == infrav1.VIPManagerKubeVIP && s.controlPlane()
	if !wanted || leaving(s.device.State) || conditions.IsTrue(s.machine, infrav1.BGPSessionReady) {
		return nil
	}
	err := s.api.StartBGPSession(ctx, s.device.ID)
	s.session = &session{}
	if err == nil || client.Is(err, client.Exists) {
		return nil
	}
	wait := failure.Wait(startingSession, err)
	if wait == nil {
		return err
	}
	s.session.problem = wait.Message
	s.retryAfter(wait.After)
	ctrl.LoggerFrom(ctx).V(2).Info("Starting the BGP session failed", "device", s.device.ID, "error", err.Error())
	return nil
}
