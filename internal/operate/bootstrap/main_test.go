package bootstrap_test

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// side is a management plane without controllers, so that only the test changes objects.
type side struct {
	*kubetest.Server
	client.Client

	t *testing.T
}

func newSide(t *testing.T, server *kubetest.Server) *side {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme, infrav1.AddToScheme, packagesv1.AddToScheme, anywherev1.AddToScheme, droverv1.AddToScheme,
		etcdbootstrapv1.AddToScheme, etcdv1.AddToScheme,
	} {
		must(t, add(scheme))
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	must(t, err)
	return &side{server, c, t}
}

// twoSides returns two planes without webhooks.
func twoSides(t *testing.T) (from, to *side) {
	t.Helper()
	other := kubetest.Start(t)
	if err := install.Apply(t.Context(), other.Config, install.Options{}); err != nil {
		t.Fatal(err)
	}
	hooks := other.Clientset(t).AdmissionregistrationV1()
	must(t, hooks.ValidatingWebhookConfigurations().Delete(t.Context(), config.ValidatingWebhooks, metav1.DeleteOptions{}))
	must(t, hooks.MutatingWebhookConfigurations().Delete(t.Context(), config.MutatingWebhooks, metav1.DeleteOptions{}))
	return newSide(t, kubetest.SharedWithoutWebhooks(t)), newSide(t, other)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *side) create(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		status := o.DeepCopyObject().(client.Object)
		must(s.t, s.Create(s.t.Context(), o))
		status.SetUID(o.GetUID())
		status.SetResourceVersion(o.GetResourceVersion())
		_ = s.Status().Update(s.t.Context(), status) // kinds without a status need no update
	}
}

func (s *side) has(o client.Object) bool {
	s.t.Helper()
	err := s.Get(context.Background(), client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
	must(s.t, client.IgnoreNotFound(err))
	return err == nil
}
