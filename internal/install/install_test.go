package install_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// kinds are the kinds of an installation's objects.
var kinds = []schema.GroupVersionResource{
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	{Version: "v1", Resource: "serviceaccounts"},
	{Version: "v1", Resource: "namespaces"},
}

const url = "https://127.0.0.1:9443"

func TestApplyingAgainWritesNothing(t *testing.T) {
	s := kubetest.Shared(t, install.Options{WebhookURL: url, Version: "v1.2.0"})
	before := versions(t, s)
	if len(before) < 25 {
		t.Fatalf("only %d objects are installed", len(before))
	}
	apply(t, s, install.Options{WebhookURL: url, Version: "v1.2.0"})
	if diff := cmp.Diff(before, versions(t, s)); diff != "" {
		t.Errorf("resource versions (-before +after):\n%s", diff)
	}
}

func TestDeletedObjectsAreRestored(t *testing.T) {
	s := kubetest.Shared(t, install.Options{WebhookURL: url, Version: "v1.2.0"})
	roles := s.Clientset(t).RbacV1().ClusterRoles()
	if err := roles.Delete(t.Context(), "drover-manager", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	apply(t, s, install.Options{WebhookURL: url, Version: "v1.2.0"})
	if _, err := roles.Get(t.Context(), "drover-manager", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestOlderDroverIsRejected(t *testing.T) {
	s := kubetest.Shared(t, install.Options{WebhookURL: url, Version: "v1.2.0"})
	before := versions(t, s)
	err := install.Apply(t.Context(), s.Config, install.Options{WebhookURL: "https://127.0.0.1:1", Version: "v1.1.9"})
	var newer *install.NewerError
	if !errors.As(err, &newer) || newer.Installed != "v1.2.0" || newer.Own != "v1.1.9" {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "use Drover v1.2.0 or later") {
		t.Errorf("no hint in %q", err)
	}
	if diff := cmp.Diff(before, versions(t, s)); diff != "" {
		t.Errorf("resource versions (-before +after):\n%s", diff)
	}
}

func TestBundlesSurviveAnUpgrade(t *testing.T) {
	s := kubetest.Shared(t, install.Options{WebhookURL: url, Version: "v1.2.0"})
	hooks := s.Clientset(t).AdmissionregistrationV1().MutatingWebhookConfigurations()
	patch := []byte(`[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"` + testCA + `"}]`)
	if _, err := hooks.Patch(t.Context(), config.MutatingWebhooks, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: "x"}); err != nil {
		t.Fatal(err)
	}
	apply(t, s, install.Options{WebhookURL: "https://127.0.0.1:9444", Version: "v1.2.0"})
	defer apply(t, s, install.Options{WebhookURL: url, Version: "v1.2.0"})
	got, err := hooks.Get(t.Context(), config.MutatingWebhooks, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := got.Webhooks[0].ClientConfig
	if len(c.CABundle) == 0 {
		t.Error("got no CA bundle, want it kept")
	}
	if c.URL == nil || *c.URL != "https://127.0.0.1:9444/mutate-cluster-x-k8s-io-v1beta2-cluster" || c.Service != nil {
		t.Errorf("client config: %+v", c)
	}
}

func TestOnlyOneNamespaceIsSupported(t *testing.T) {
	err := install.Apply(t.Context(), nil, install.Options{Namespace: "elsewhere"})
	if err == nil || !strings.Contains(err.Error(), `only "drover-system" is supported`) {
		t.Errorf("got %v", err)
	}
}

// testCA is base64 of arbitrary bytes; the API server does not parse it.
const testCA = "c29tZSBDQQ=="

func apply(t *testing.T, s *kubetest.Server, o install.Options) {
	t.Helper()
	if err := install.Apply(t.Context(), s.Config, o); err != nil {
		t.Fatal(err)
	}
}

// versions returns the resource versions of all our objects.
func versions(t *testing.T, s *kubetest.Server) map[string]string {
	t.Helper()
	c, err := metadata.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, kind := range kinds {
		list, err := c.Resource(kind).List(t.Context(), metav1.ListOptions{LabelSelector: config.LabelPartOf + "=" + config.PartOf})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			found[kind.Resource+"/"+item.Name] = item.ResourceVersion
		}
	}
	return found
}

func TestObjectsAppliedByKubectlAreAdopted(t *testing.T) {
	s := kubetest.Start(t)
	file := filepath.Join(t.TempDir(), "provider-components.yaml")
	if err := os.WriteFile(file, config.Render("registry.example/manager:v1"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := s.Kube.Command(t.Context(), "kubectl", "--kubeconfig="+s.Kubeconfig(t), "apply", "-f", file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	apply(t, s, install.Options{WebhookURL: url})
	got, err := s.Clientset(t).AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), config.MutatingWebhooks, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range got.Webhooks {
		if c := w.ClientConfig; c.URL == nil || !strings.HasPrefix(*c.URL, url+"/") || c.Service != nil {
			t.Errorf("%s is called at %+v", w.Name, c)
		}
	}
}

func TestFluxIsInstalledOnceAndKeepsAForeignOne(t *testing.T) {
	s := kubetest.Start(t)
	definitions := func() map[string]string {
		c, err := metadata.NewForConfig(s.Config)
		if err != nil {
			t.Fatal(err)
		}
		list, err := c.Resource(kinds[0]).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, item := range list.Items {
			found[item.Name] = item.ResourceVersion
		}
		return found
	}
	more := config.FluxManager(config.FluxImages{Source: "example/source:1", Kustomize: "example/kustomize:1"})
	applyFlux := func() error {
		return install.ApplyFlux(t.Context(), s.Config, install.Options{Version: "v1.2.0", More: more})
	}
	if err := applyFlux(); err != nil {
		t.Fatal(err)
	}
	before := definitions()
	if len(before) != len(config.FluxCRDs()) {
		t.Errorf("installed %v", before)
	}
	if err := applyFlux(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, definitions()); diff != "" {
		t.Errorf("resource versions after the second time (-before +after):\n%s", diff)
	}
	for _, name := range []string{config.FluxSource, config.FluxKustomize} {
		if _, err := s.Clientset(t).AppsV1().Deployments(config.FluxNamespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	bindings := s.Clientset(t).RbacV1().ClusterRoleBindings()
	patch := []byte(`{"metadata":{"annotations":{"` + install.HashAnnotation + `":null}}}`)
	if _, err := bindings.Patch(t.Context(), "cluster-reconciler-flux-system", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	var foreign *install.ForeignError
	if err := applyFlux(); !errors.As(err, &foreign) || foreign.Object != "clusterrolebindings/cluster-reconciler-flux-system" {
		t.Errorf("got %v", err)
	}
}
