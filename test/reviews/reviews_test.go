// Package reviews fuzzes the admission webhooks: whoever may write an object of Drover chooses most
// of the AdmissionReview that they parse.
package reviews

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	addons "github.com/drover-dev/drover/internal/controllers/addons/admission"
	clusters "github.com/drover-dev/drover/internal/controllers/clusters/admission"
	gitops "github.com/drover-dev/drover/internal/controllers/gitops/admission"
	packages "github.com/drover-dev/drover/internal/controllers/packages/admission"
	packet "github.com/drover-dev/drover/internal/controllers/packet/admission"
)

// paths are the webhooks that are fuzzed.
var paths = []string{
	"/validate-anywhere-eks-amazonaws-com-v1alpha1-cluster", "/mutate-anywhere-eks-amazonaws-com-v1alpha1-cluster",
	"/validate-anywhere-eks-amazonaws-com-v1alpha1-packetdatacenterconfig", "/validate-anywhere-eks-amazonaws-com-v1alpha1-packetmachineconfig",
	"/validate-anywhere-eks-amazonaws-com-v1alpha1-oidcconfig", "/validate-anywhere-eks-amazonaws-com-v1alpha1-fluxconfig",
	"/validate-addons-cluster-x-k8s-io-v1alpha1-helmchartproxy", "/mutate-addons-cluster-x-k8s-io-v1alpha1-helmchartproxy",
	"/validate-addons-cluster-x-k8s-io-v1alpha1-helmreleaseproxy", "/validate-packages-eks-amazonaws-com-v1alpha1-package",
	"/validate-packages-eks-amazonaws-com-v1alpha1-packagebundle", "/validate-packages-eks-amazonaws-com-v1alpha1-packagebundlecontroller",
	"/validate-infrastructure-cluster-x-k8s-io-v1beta1-packetcluster", "/validate-infrastructure-cluster-x-k8s-io-v1beta1-packetmachine",
	"/validate-infrastructure-cluster-x-k8s-io-v1beta1-packetmachinetemplate", "/validate-infrastructure-cluster-x-k8s-io-v1beta1-packetclustertemplate",
	"/validate-anywhere-eks-amazonaws-com-v1alpha1-dockerdatacenterconfig", "/validate-anywhere-eks-amazonaws-com-v1alpha1-gitopsconfig",
	"/validate-drover-dev-v1alpha1-gitchange", "/mutate-drover-dev-v1alpha1-gitchange",
}

// newWebhooks returns all webhooks, in front of an API server without objects.
func newWebhooks(t testing.TB) http.Handler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme, anywherev1.AddToScheme, infrav1.AddToScheme, packagesv1.AddToScheme, droverv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		NewClient: func(*rest.Config, client.Options) (client.Client, error) {
			return fake.NewClientBuilder().WithScheme(scheme).Build(), nil
		},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return testrestmapper.TestOnlyStaticRESTMapper(scheme), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	version := func(string) (string, error) { return "v1.36.3", nil }
	for name, err := range map[string]error{
		"addons": addons.Setup(mgr, addons.Options{}), "packages": packages.Setup(mgr, packages.Options{}),
		"gitops": gitops.Setup(mgr, gitops.Options{Enabled: true}), "packet": packet.Setup(mgr), "clusters": clusters.Setup(mgr, clusters.Options{Version: version}),
	} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return mgr.GetWebhookServer().WebhookMux()
}

// FuzzAdmissionReviews finds objects that make a webhook panic, or answer with anything but a
// review of this request.
func FuzzAdmissionReviews(f *testing.F) {
	webhooks := newWebhooks(f)
	for i := range paths {
		f.Add(uint8(i), `{"metadata":{"name":"a"},"spec":{}}`, `{"metadata":{"name":"a"}}`)
	}
	f.Add(uint8(0), `{"metadata":{"name":"a"},"spec":{"controlPlaneConfiguration":{"endpoint":null},"workerNodeGroupConfigurations":[{}],"datacenterRef":{},"clusterNetwork":{"pods":{"cidrBlocks":["::/0",""]}}}}`, ``)
	f.Add(uint8(6), `{"spec":{"clusterSelector":{"matchExpressions":[{"key":"","operator":"X"}]},"valuesTemplate":"{{ .x","version":"~"}}`, `{}`)
	f.Add(uint8(9), `{"spec":{"config":"a: &a [*a]","packageName":""}}`, `{"spec":{"config":"\u0000"}}`)
	f.Fuzz(func(t *testing.T, which uint8, object, was string) {
		path := paths[int(which)%len(paths)]
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete} {
			review(t, webhooks, path, operation, []byte(object), []byte(was))
		}
	})
}

// review sends an AdmissionReview and checks the answer.
func review(t *testing.T, webhooks http.Handler, path string, operation admissionv1.Operation, object, was []byte) {
	t.Helper()
	request := &admissionv1.AdmissionRequest{
		UID: "u", Operation: operation, Namespace: "team-a", Name: "a", UserInfo: authenticationv1.UserInfo{Username: "creator"},
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: was},
	}
	if operation == admissionv1.Create {
		request.OldObject = runtime.RawExtension{}
	}
	in := &admissionv1.AdmissionReview{Request: request}
	in.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(in)
	if err != nil {
		return // not JSON: the API server never sends it
	}
	answer := httptest.NewRecorder()
	sent := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(body)))
	sent.Header.Set("Content-Type", "application/json")
	webhooks.ServeHTTP(answer, sent)
	var out admissionv1.AdmissionReview
	if err := json.Unmarshal(answer.Body.Bytes(), &out); err != nil || answer.Code != http.StatusOK || out.Response == nil {
		t.Fatalf("%s answered %d: %s", path, answer.Code, answer.Body)
	}
	if out.Response.UID != "u" || strings.Contains(answer.Body.String(), "[recovered]") {
		t.Errorf("%s: %s", path, answer.Body)
	}
}
