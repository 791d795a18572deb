package manager_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/manager/webhookcert"
)

func TestRemovedCABundleIsRestored(t *testing.T) {
	server, _ := ready(t)
	kube, c := server.Clientset(t), newClient(t, server.Config)

	t.Run("of admission webhooks", func(t *testing.T) {
		hooks := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		remove := []byte(`[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`)
		if _, err := hooks.Patch(t.Context(), config.ValidatingWebhooks, types.JSONPatchType, remove, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			got, err := hooks.Get(t.Context(), config.ValidatingWebhooks, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return present(got.Webhooks[0].ClientConfig.CABundle)
		})
	})
	t.Run("of a definition's conversion", func(t *testing.T) {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "machinepools.cluster.x-k8s.io"}}
		remove := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/conversion/webhook/clientConfig/caBundle"}]`))
		if err := c.Patch(t.Context(), crd, remove); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
				return err
			}
			return present(crd.Spec.Conversion.Webhook.ClientConfig.CABundle)
		})
	})
	t.Run("with the secret, if that was deleted too", func(t *testing.T) {
		secrets := kube.CoreV1().Secrets(config.Namespace)
		if err := secrets.Delete(t.Context(), webhookcert.SecretName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			_, err := secrets.Get(t.Context(), webhookcert.SecretName, metav1.GetOptions{})
			return err
		})
	})
}

func present(bundle []byte) error {
	if len(bundle) == 0 {
		return errors.New("the bundle is missing")
	}
	return nil
}
