package objects

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestObjectsAreSortedByDependency(t *testing.T) {
	var all []*Object
	for _, kind := range []string{"ValidatingWebhookConfiguration", "Deployment", "Widget", "ConfigMap", "Gadget", CRDKind, "Namespace", "ConfigMap"} {
		all = append(all, &Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{"kind": kind}}})
	}
	Sort(all)
	var got []string
	for _, group := range Groups(all) {
		got = append(got, group[0].GetKind()+strings.Repeat("+", len(group)-1))
	}
	want := []string{"Namespace", CRDKind, "ConfigMap+", "Deployment", "Gadget", "Widget", "ValidatingWebhookConfiguration"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if Custom("Deployment") || Custom("APIService") || !Custom("Widget") {
		t.Error("kinds of Kubernetes are taken for others, or the other way round")
	}
}

func TestDiffFields(t *testing.T) {
	before := parsed(t, "kind: Secret\napiVersion: v1\nmetadata: {resourceVersion: '1', labels: {a: b}}\ndata: {x: YQ==, y: YQ==}\nlist: [1, 2]\n")
	after := parsed(t, "kind: Secret\napiVersion: v1\nmetadata: {resourceVersion: '2', labels: {a: c, d.e: f}}\ndata: {x: Yg==, y: YQ==}\nlist: [1]\n")
	want := []string{"data.x: *** → ***", "- list[1]: 2", `metadata.labels.a: "b" → "c"`, `+ metadata.labels[d.e]: "f"`}
	if diff := cmp.Diff(want, strings.Split(FieldDiff(WithoutServerFields(before), WithoutServerFields(after)), "\n")); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	if got := FieldDiff(WithoutServerFields(before), WithoutServerFields(before)); got != "" {
		t.Errorf("diff %q of the same", got)
	}
}

func TestForeignFieldsAreKept(t *testing.T) {
	wanted := parsed(t, "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: web, annotations: {a/b: x}}\nspec: {replicas: 1, list: [{a: 1}, {a: 2}]}\n")
	live := parsed(t, "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: web}\nspec: {replicas: 7, list: [{a: 1}, {a: 3}]}\n")
	rules := []addonsv1.IgnoreRule{
		{Group: "apps", Kind: "Deployment", Paths: []string{"/spec/replicas", "/spec/list/1/a", "/metadata/annotations/a~1b"}},
		{Name: "other", Paths: []string{"/spec"}},
	}
	got := WithLive(wanted, live, Pointers(rules, wanted))
	want := parsed(t, "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: web, annotations: {}}\nspec: {replicas: 7, list: [{a: 1}, {a: 3}]}\n")
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("with the fields of others (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(parsed(t, "spec: {list: [{a: 1}, {}]}").Object["spec"], Without(wanted, Pointers(rules, wanted)).Object["spec"]); diff != "" {
		t.Errorf("without them (-want +got):\n%s", diff)
	}
}

func TestErrorsAreRedacted(t *testing.T) {
	values := map[string]any{"a": map[string]any{"password": "canary-1", "short": "x"}, "list": []any{"first\nsecond line", 123456}}
	err := Redact(errors.New(`bad "canary-1" in "Y2FuYXJ5LTE=": second line, 123456, x`), values)
	if got, want := err.Error(), `bad "***" in "***": ***, ***, x`; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func TestHealthMessageIsBounded(t *testing.T) {
	health := Summary([]Verdict{
		{Title: "A", Ready: true}, {Title: "B", Reason: "waits\n for it"}, {Title: "C", Failed: true, Reason: "broke"}, {Title: "D"}, {Title: "E"},
	})
	if health.Ready || !health.Failed || health.Message != "C: broke; B: waits for it; D: ; and 1 more" {
		t.Errorf("health %+v", health)
	}
	c := NewChecker()
	live := parsed(t, "apiVersion: example.com/v1\nkind: Widget\nstatus: {phase: Bad}\n")
	checks := []addonsv1.HealthCheck{{APIVersion: "example.com/v1", Kind: "Widget", Current: `self.status.phase == "Good"`, Failed: `self.status.phase == "Bad"`}}
	if v, err := c.Evaluate(t.Context(), live, checks); err != nil || v.Ready || !v.Failed {
		t.Errorf("verdict %+v (error %v), want what the expressions say", v, err)
	}
	checks[0].Current = "self.("
	if _, err := c.Evaluate(t.Context(), live, checks); err == nil {
		t.Error("an expression that can't be read is no error")
	}
}
