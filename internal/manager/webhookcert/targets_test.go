package webhookcert_test

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/config"
)

// bundles returns all CA bundles by location.
func (f fixture) bundles(t *testing.T) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for _, crd := range f.definitions(t) {
		found[crd.Name] = crd.Spec.Conversion.Webhook.ClientConfig.CABundle
	}
	mutating, err := f.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), config.MutatingWebhooks, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range mutating.Webhooks {
		found[fmt.Sprintf("%s/%d", mutating.Name, i)] = w.ClientConfig.CABundle
	}
	validating, err := f.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), config.ValidatingWebhooks, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range validating.Webhooks {
		found[fmt.Sprintf("%s/%d", validating.Name, i)] = w.ClientConfig.CABundle
	}
	if len(found) < 40 {
		t.Fatalf("only %d places for a bundle", len(found))
	}
	return found
}

func (f fixture) versions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, crd := range f.definitions(t) {
		versions[crd.Name] = crd.ResourceVersion
	}
	return versions
}

func (f fixture) definitions(t *testing.T) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	c, err := apiextensionsclient.NewForConfig(f.server.Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{LabelSelector: config.LabelInjectCA + "=true"})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}
