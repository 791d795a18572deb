package manager

import (
	"context"
	"crypto/tls"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/drover-dev/drover/internal/controllers/gitops"
	"github.com/drover-dev/drover/internal/controllers/gitops/receiver"
	"github.com/drover-dev/drover/internal/manager/webhookcert"
)

func (o Options) gitOpsOptions(c *connections) gitops.Options {
	return gitops.Options{
		Enabled: o.GitOps, Metadata: c.Metadata, FluxNamespace: o.FluxNamespace, ManagementCluster: o.ManagementCluster, Concurrency: o.Concurrency,
	}
}

// addReceiver serves webhooks of Git servers, which the API server doesn't call and which therefore
// have an address of their own.
func (o Options) addReceiver(certs *webhookcert.Certs) func(context.Context, ctrl.Manager) error {
	return func(_ context.Context, mgr ctrl.Manager) error {
		if !o.GitOps {
			return nil
		}
		config := &tls.Config{MinVersion: tls.VersionTLS12} // Git servers of others may be older.
		config.GetCertificate = certs.GetCertificate
		return receiver.Setup(mgr, receiver.Options{Addr: o.GitWebhookAddr, TLS: config})
	}
}
