package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/config"
)

func TestSingular(t *testing.T) {
	for resource, want := range map[string]string{
		"clusters": "cluster", "helmchartproxies": "helmchartproxy", "packages": "package", "packagebundles": "packagebundle", "": "", "s": "",
	} {
		if got := singular(resource); got != want {
			t.Errorf("%q is several of %q, want %q", resource, got, want)
		}
	}
}

func TestAdaptCRD(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"own": "x", "cluster.x-k8s.io/provider": "from-types"}}}
	ownAPI{label: "packet", contracts: map[string]string{"v1beta2": "v1beta1"}}.adaptCRD(crd)
	want := map[string]string{
		"own": "x", "cluster.x-k8s.io/provider": "from-types", "clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/v1beta2": "v1beta1",
		config.LabelPartOf: config.PartOf,
	}
	if diff := cmp.Diff(want, crd.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if crd.Spec.Conversion != nil {
		t.Error("our kinds have one version and need no conversion")
	}
}

func TestAdaptUpstreamCRD(t *testing.T) {
	for contracts, want := range map[bool]int{false: 4, true: 6} {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"dropped": "x"}}}
		provider{label: "cluster-api", contracts: contracts}.adaptCRD(crd)
		if len(crd.Labels) != want || crd.Labels["cluster.x-k8s.io/provider"] != "cluster-api" || crd.Labels["dropped"] != "" {
			t.Errorf("with contracts %t: labels %v", contracts, crd.Labels)
		}
		service := crd.Spec.Conversion.Webhook.ClientConfig.Service
		if service.Namespace != config.Namespace || service.Name != config.WebhookService || *service.Path != "/convert" {
			t.Errorf("conversion by %+v", service)
		}
	}
	inventory := &apiextensionsv1.CustomResourceDefinition{}
	adaptInventory(inventory)
	if inventory.Spec.Conversion != nil || inventory.Labels[config.LabelInjectCA] != "" {
		t.Errorf("the inventory has webhooks: %+v", inventory.Labels)
	}
}

func TestWebhooksOfAnAPI(t *testing.T) {
	plain := ownAPI{group: "example.com", version: "v1", validated: []string{"widgets", "policies"}, deleted: []string{"widgets"}}
	var got []string
	for _, h := range plain.validating() {
		var operations []string
		for _, o := range h.Rules[0].Operations {
			operations = append(operations, string(o))
		}
		got = append(got, strings.Join([]string{h.Name, *h.ClientConfig.Service.Path, strings.Join(operations, "+"), strings.Join(h.Rules[0].Resources, ",")}, " "))
		if *h.FailurePolicy != admissionv1.Fail || *h.SideEffects != admissionv1.SideEffectClassNone || h.MatchConditions != nil {
			t.Errorf("webhook %+v", h)
		}
	}
	want := []string{
		"validation.widget.example.com /validate-example-com-v1-widget CREATE+UPDATE+DELETE widgets",
		"validation.policy.example.com /validate-example-com-v1-policy CREATE+UPDATE policies",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	if plain.mutating() != nil {
		t.Error("an API without defaults has a defaulting webhook")
	}
}

func TestDefaultingWebhooks(t *testing.T) {
	all := ownAPI{
		group: "example.com", version: "v1", validated: []string{"widgets", "policies"}, named: true, defaults: true, changes: true,
		defaulted: map[string]string{"widgets": "!has(object.spec.size)"},
	}
	hooks := all.mutating()
	if len(hooks) != 2 || hooks[0].Name != "widget.kb.io" || hooks[1].Name != "policy.kb.io" || *hooks[0].ClientConfig.Service.Path != "/mutate-example-com-v1-widget" {
		t.Fatalf("webhooks %+v", hooks)
	}
	changed := admissionv1.MatchCondition{Name: "spec-changed", Expression: unlessTheSame}
	if diff := cmp.Diff([]admissionv1.MatchCondition{changed, {Name: "incomplete", Expression: "!has(object.spec.size)"}}, hooks[0].MatchConditions); diff != "" {
		t.Errorf("conditions of widgets (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]admissionv1.MatchCondition{changed}, hooks[1].MatchConditions); diff != "" {
		t.Errorf("conditions of policies (-want +got):\n%s", diff)
	}
	some := ownAPI{group: "example.com", version: "v1", validated: []string{"widgets", "policies"}, defaults: true, mutated: []string{"policies"}}
	if hooks := some.mutating(); len(hooks) != 1 || hooks[0].Name != "default.policy.example.com" || hooks[0].MatchConditions != nil {
		t.Errorf("webhooks %+v", hooks)
	}
	if names := all.validating(); names[0].Name != "vwidget.kb.io" {
		t.Errorf("a validating webhook is called %q", names[0].Name)
	}
}

func TestEveryAPIExists(t *testing.T) {
	for _, api := range ownAPIs {
		if _, err := os.Stat(filepath.Join("../../..", api.dir)); err != nil {
			t.Error(err)
		}
		for _, resource := range append(api.mutated, api.deleted...) {
			if !strings.Contains(strings.Join(api.validated, " "), resource) {
				t.Errorf("%s of %s is not validated", resource, api.group)
			}
		}
	}
}

const manifests = `---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: upstream}
webhooks:
- name: default.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: upstream, namespace: system, path: /mutate}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: upstream}
webhooks:
- name: validation.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: upstream, namespace: system, path: /validate}}
`

func TestUpstreamWebhooksAreOurs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newConfigurations()
	if err := c.read(file); err != nil {
		t.Fatal(err)
	}
	if len(c.mutating.Webhooks) != 1 || len(c.validating.Webhooks) != 1 {
		t.Fatalf("%d and %d webhooks", len(c.mutating.Webhooks), len(c.validating.Webhooks))
	}
	for path, service := range map[string]*admissionv1.ServiceReference{
		"/mutate": c.mutating.Webhooks[0].ClientConfig.Service, "/validate": c.validating.Webhooks[0].ClientConfig.Service,
	} {
		if service.Name != config.WebhookService || service.Namespace != config.Namespace || *service.Path != path {
			t.Errorf("%s is served by %+v", path, service)
		}
	}
	if c.mutating.Name != config.MutatingWebhooks || c.validating.Labels[config.LabelInjectCA] != "true" {
		t.Errorf("configurations %q, %v", c.mutating.Name, c.validating.Labels)
	}
}

func TestUnknownFieldsOfUpstreamFail(t *testing.T) {
	for name, doc := range map[string]string{
		"mutating":   "kind: MutatingWebhookConfiguration\nnews: 1\n",
		"validating": "kind: ValidatingWebhookConfiguration\nnews: 1\n",
		"no YAML":    "{",
	} {
		if err := newConfigurations().add([]byte(doc)); err == nil {
			t.Errorf("%s: a field that is not known is dropped", name)
		}
	}
	if err := newConfigurations().add([]byte(" \n")); err != nil {
		t.Errorf("an empty document: %v", err)
	}
	if err := newConfigurations().read("missing.yaml"); !os.IsNotExist(err) {
		t.Errorf("error %v without a file", err)
	}
}

func TestWriteObject(t *testing.T) {
	file := filepath.Join(t.TempDir(), "crd.yaml")
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
	if err := writeObject(file, fromTypes, crd); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if !strings.HasPrefix(text, "# Generated by hack/components/upstream from the types in api. DO NOT EDIT.\n") ||
		!strings.Contains(text, "name: widgets.example.com") || strings.Contains(text, "creationTimestamp") || strings.Contains(text, "status:") {
		t.Errorf("file:\n%s", text)
	}
	if err := writeObject(file, fromTypes, func() {}); err == nil || !strings.HasPrefix(err.Error(), "encoding ") {
		t.Errorf("error %v for what can't be encoded", err)
	}
}

func TestConvertCRD(t *testing.T) {
	in, out := filepath.Join(t.TempDir(), "in.yaml"), t.TempDir()
	if err := os.WriteFile(in, []byte("metadata: {name: widgets.example.com}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	name, err := convertCRD(in, out, fromModule, adaptInventory)
	if err != nil || name != filepath.Join(out, "widgets.example.com.yaml") {
		t.Errorf("wrote %q, error %v", name, err)
	}
	if err := os.WriteFile(in, []byte("news: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := convertCRD(in, out, fromModule, adaptInventory); err == nil || !strings.Contains(err.Error(), in) {
		t.Errorf("error %v does not name the file", err)
	}
}

func TestPruneDirKeepsWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"keep.yaml", "old.yaml", "notes.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := pruneDir(dir, map[string]bool{filepath.Join(dir, "keep.yaml"): true}); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"keep.yaml", "notes.md"}, left); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
