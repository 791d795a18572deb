package webhookcert_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/manager/webhookcert"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

var names = []string{"drover-webhook.drover-system.svc", "127.0.0.1"}

// fixture is a cluster without certificates and a clock.
type fixture struct {
	server *kubetest.Server
	kube   kubernetes.Interface
	clock  *clocktesting.FakePassiveClock
}

func setup(t *testing.T) fixture {
	t.Helper()
	server := kubetest.Shared(t, install.Options{})
	f := fixture{server: server, kube: server.Clientset(t), clock: clocktesting.NewFakePassiveClock(time.Now())}
	err := f.kube.CoreV1().Secrets(config.Namespace).Delete(t.Context(), webhookcert.SecretName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return f
}

// replica is the view of one process.
func (f fixture) replica(t *testing.T) *webhookcert.Certs {
	t.Helper()
	c, err := webhookcert.New(f.server.Config, webhookcert.Options{Namespace: config.Namespace, Names: names, Clock: f.clock})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (f fixture) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	s, err := f.kube.CoreV1().Secrets(config.Namespace).Get(t.Context(), webhookcert.SecretName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConcurrentReplicasAgreeOnOneCertificate(t *testing.T) {
	f := setup(t)
	replicas := make([]*webhookcert.Certs, 2)
	var wg sync.WaitGroup
	for i := range replicas {
		replicas[i] = f.replica(t)
		wg.Go(func() {
			if _, err := replicas[i].Ensure(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, r := range replicas {
		if !bytes.Equal(served(t, r).Raw, served(t, replicas[0]).Raw) {
			t.Errorf("replica %d serves another certificate", i)
		}
	}
}

func TestCABundleIsWrittenOnlyToOwnObjects(t *testing.T) {
	f := setup(t)
	if _, err := f.replica(t).Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := f.secret(t).Data["ca.crt"]
	for name, got := range f.bundles(t) {
		if !bytes.Equal(got, want) {
			t.Errorf("%s has another bundle", name)
		}
	}
	raw, err := f.kube.Discovery().RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/providers.clusterctl.cluster.x-k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte("caBundle")) {
		t.Error("a definition without webhooks got a bundle")
	}
}

func TestRemovedCABundleIsRestored(t *testing.T) {
	f := setup(t)
	c := f.replica(t)
	if _, err := c.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	remove := []byte(`[{"op":"remove","path":"/webhooks/3/clientConfig/caBundle"}]`)
	hooks := f.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := hooks.Patch(t.Context(), config.ValidatingWebhooks, types.JSONPatchType, remove, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := f.secret(t).Data["ca.crt"]
	for name, got := range f.bundles(t) {
		if !bytes.Equal(got, want) {
			t.Errorf("%s lacks the bundle", name)
		}
	}
}

func TestUnchangedCertificatesAreNotWritten(t *testing.T) {
	f := setup(t)
	c := f.replica(t)
	if _, err := c.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, version := f.versions(t), f.secret(t).ResourceVersion
	f.clock.SetTime(f.clock.Now().Add(24 * time.Hour))
	after, err := c.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after <= 0 {
		t.Errorf("wants to be called again after %s", after)
	}
	if f.secret(t).ResourceVersion != version {
		t.Error("the secret was written")
	}
	for name, v := range f.versions(t) {
		if before[name] != v {
			t.Errorf("%s was written", name)
		}
	}
}

func TestCertificatesAreRotated(t *testing.T) {
	f := setup(t)
	c := f.replica(t)
	if _, err := c.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, firstCA := served(t, c), f.secret(t).Data["ca.crt"]

	advance := func(d time.Duration) {
		f.clock.SetTime(f.clock.Now().Add(d))
		if _, err := c.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	advance(70 * 24 * time.Hour)
	if leaf := served(t, c); bytes.Equal(leaf.Raw, first.Raw) {
		t.Error("the leaf was not renewed")
	}
	if !bytes.Equal(f.secret(t).Data["ca.crt"], firstCA) {
		t.Error("the CA was renewed with the leaf")
	}
	advance(430 * 24 * time.Hour)
	both := f.secret(t).Data["ca.crt"]
	if !bytes.Contains(both, firstCA) || len(both) <= len(firstCA) {
		t.Error("the bundle does not hold the old and the new CA")
	}
	for name, got := range f.bundles(t) {
		if !bytes.Equal(got, both) {
			t.Errorf("%s does not trust both CAs", name)
		}
	}
	advance(2 * time.Hour)
	advance(2 * time.Hour)
	if last := f.secret(t).Data["ca.crt"]; bytes.Contains(last, firstCA) {
		t.Error("the old CA is still trusted")
	}
	if _, err := served(t, c).Verify(x509.VerifyOptions{Roots: c.Pool(), CurrentTime: f.clock.Now(), DNSName: names[0]}); err != nil {
		t.Errorf("what is served is not trusted: %v", err)
	}
}

func TestDeletedSecretIsRestoredFromMemory(t *testing.T) {
	f := setup(t)
	c := f.replica(t)
	if _, err := c.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := f.secret(t).Data
	if err := f.kube.CoreV1().Secrets(config.Namespace).Delete(t.Context(), webhookcert.SecretName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, want := range before {
		if !bytes.Equal(f.secret(t).Data[key], want) {
			t.Errorf("%s changed", key)
		}
	}
}

func TestDamagedSecretIsReplaced(t *testing.T) {
	f := setup(t)
	if _, err := f.replica(t).Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := f.secret(t)
	s.Data["ca.key"] = []byte("damaged")
	if _, err := f.kube.CoreV1().Secrets(config.Namespace).Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c := f.replica(t)
	if _, err := c.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := served(t, c).Verify(x509.VerifyOptions{Roots: c.Pool(), DNSName: names[0]}); err != nil {
		t.Error(err)
	}
}

func TestNothingIsServedWithoutACertificate(t *testing.T) {
	f := setup(t)
	if cert, err := f.replica(t).GetCertificate(nil); err == nil {
		t.Errorf("got %v", cert)
	}
}

func served(t *testing.T, c *webhookcert.Certs) *x509.Certificate {
	t.Helper()
	cert, err := c.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return cert.Leaf
}
