package packagestest

import (
	"context"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/scheme"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// Plane is a management plane: the API server of the test package, without webhooks, and a manager
// for the controllers of the test.
type Plane struct {
	// Manager is a field and not embedded, because guards recognize only the manager itself.
	Manager ctrl.Manager
	// Direct reads from the API server.
	Direct client.Client
}

// Options configure a Plane.
type Options struct {
	// Wrap adds transports between the manager and the API server.
	Wrap []func(http.RoundTripper) http.RoundTripper
	// Uncached lists kinds that the client of the manager reads from the API server.
	Uncached []client.Object
	// Namespaces are created besides the namespace of bundles.
	Namespaces []string
}

// NewPlane returns a plane whose manager has not started.
func NewPlane(t testing.TB, o Options) *Plane {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	all, err := scheme.New()
	Must(t, err)
	config := rest.CopyConfig(server.Config)
	for _, wrap := range o.Wrap {
		config.Wrap(wrap)
	}
	mgr, err := reconcile.NewManager(config, ctrl.Options{
		Scheme: all, Metrics: metricsserver.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: o.Uncached}},
	})
	Must(t, err)
	p := &Plane{Manager: mgr}
	p.Direct, err = client.New(server.Config, client.Options{Scheme: all})
	Must(t, err)
	for _, name := range append([]string{packagesv1.Namespace}, o.Namespaces...) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		Must(t, client.IgnoreAlreadyExists(p.Direct.Create(t.Context(), namespace)))
	}
	return p
}

// Run starts the manager, which runs until the context is done, and waits for its cache. The
// channel receives the error of the manager.
func (p *Plane) Run(ctx context.Context, t testing.TB) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.Manager.Start(ctx) }()
	if !p.Manager.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache was not synced")
	}
	return ended
}
