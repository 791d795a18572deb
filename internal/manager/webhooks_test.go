package manager_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionapi "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/manager/webhookcert"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// hook is a webhook of the shipped configurations, with its kind.
type hook struct {
	path, kind, apiVersion string
	resource, subresource  string
	operation              admissionapi.Operation
}

// scaledControlPlane is the object that the scale webhook reads.
const scaledControlPlane = `
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: probe}
spec:
  replicas: 1
  version: v1.36.3
  kubeadmConfigSpec: {format: cloud-config}
  machineTemplate: {spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: ThingMachineTemplate, name: t}}}`

func TestEveryAdmissionWebhookAnswers(t *testing.T) {
	server, m := ready(t)
	c := trusting(t, server)
	create(t, newClient(t, server.Config), "default", scaledControlPlane)
	hooks := shippedHooks(t)
	if len(hooks) < 25 {
		t.Fatalf("only %d webhooks are shipped", len(hooks))
	}
	for _, h := range hooks {
		t.Run(strings.TrimPrefix(h.path, "/"), func(t *testing.T) {
			answer := call(t, c, "https://"+m.webhook+h.path, h.review())
			if answer.Response == nil || answer.Response.UID != "test" {
				t.Fatalf("no answer: %+v", answer)
			}
			status := answer.Response.Result
			if status == nil || status.Code == 400 && status.Reason != "" { // an unreadable object is rejected without a reason
				return
			}
			if status.Code == 400 || status.Code >= 500 {
				t.Errorf("did not work on the object: %d %s", status.Code, status.Message)
			}
		})
	}
}

func TestUnknownWebhookIsNotFound(t *testing.T) {
	server, m := ready(t)
	resp, err := trusting(t, server).Post("https://"+m.webhook+"/validate-nothing", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("status %s", resp.Status)
	}
}

func (h hook) review() *admissionapi.AdmissionReview {
	object := runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":%q,"kind":%q,"metadata":{"name":"probe","namespace":"default"},"spec":{}}`, h.apiVersion, h.kind)}
	review := &admissionapi.AdmissionReview{Request: &admissionapi.AdmissionRequest{
		UID: "test", Operation: h.operation, Object: object, Name: "probe", Namespace: "default", SubResource: h.subresource,
	}}
	review.SetGroupVersionKind(admissionapi.SchemeGroupVersion.WithKind("AdmissionReview"))
	if h.operation == admissionapi.Update {
		review.Request.OldObject = object
	}
	return review
}

// shippedHooks reads both embedded configurations; they have the same shape as far as is needed
// here.
func shippedHooks(t *testing.T) []hook {
	t.Helper()
	kinds := map[string]string{"kubeadmcontrolplanes/scale": "Scale"}
	for _, m := range config.CRDs() {
		crd := apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(m.Data, &crd); err != nil {
			t.Fatal(err)
		}
		kinds[crd.Spec.Names.Plural] = crd.Spec.Names.Kind
	}
	var hooks []hook
	for _, m := range config.Webhooks() {
		c := admissionv1.ValidatingWebhookConfiguration{}
		if err := yaml.Unmarshal(m.Data, &c); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.Webhooks {
			rule := w.Rules[0]
			h := hook{
				path: *w.ClientConfig.Service.Path, resource: rule.Resources[0], kind: kinds[rule.Resources[0]],
				apiVersion: rule.APIGroups[0] + "/" + rule.APIVersions[0], operation: admissionapi.Operation(rule.Operations[0]),
			}
			if h.kind == "Scale" {
				h.apiVersion, h.subresource = "autoscaling/v1", "scale"
			}
			hooks = append(hooks, h)
		}
	}
	return hooks
}

// trusting returns a client with the API server's trust: the CA in the shared Secret, and the
// Service's name.
func trusting(t *testing.T, server *kubetest.Server) *http.Client {
	t.Helper()
	secret, err := server.Clientset(t).CoreV1().Secrets(config.Namespace).Get(t.Context(), webhookcert.SecretName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		t.Fatal("the secret holds no CA")
	}
	name := config.WebhookService + "." + config.Namespace + ".svc"
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: name}}}
}

func call(t *testing.T, c *http.Client, url string, review *admissionapi.AdmissionReview) *admissionapi.AdmissionReview {
	t.Helper()
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %s", resp.Status)
	}
	answer := &admissionapi.AdmissionReview{}
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		t.Fatal(err)
	}
	return answer
}
