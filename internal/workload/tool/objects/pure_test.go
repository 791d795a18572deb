package objects

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/workload/tool"
)

func object(t *testing.T, text string) *Object {
	t.Helper()
	return &Object{Unstructured: parsed(t, text)}
}

func TestTitleAndIdentity(t *testing.T) {
	for text, want := range map[string][2]string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: shop}}":                       {`Namespace "shop"`, "/Namespace//shop"},
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: b}}":    {`Deployment "b/web"`, "apps/Deployment/b/web"},
		"{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: w, namespace: b}}": {`Deployment "b/w"`, "apps/Deployment/b/w"},
		"{}": {` ""`, "///"},
	} {
		o := object(t, text)
		if got := [2]string{o.Title(), o.Identity()}; got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	o := object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: b}}")
	want := tool.Object{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "b", Name: "web"}
	if got := o.Named(); got != want {
		t.Errorf("named %+v, want %+v", got, want)
	}
}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	m.Add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: CRDKind}, meta.RESTScopeRoot)
	return m
}

func TestLocate(t *testing.T) {
	for name, tt := range map[string]struct{ in, namespace, resource string }{
		"the namespace of the installation":   {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "shop", "configmaps"},
		"its own namespace":                   {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: own}}", "own", "configmaps"},
		"objects of the cluster have none":    {"{apiVersion: v1, kind: Namespace, metadata: {name: a}}", "", "namespaces"},
		"even if the manifest says otherwise": {"{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: own}}", "", "namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, tt.in)
			if o.Known() {
				t.Error("it is known before")
			}
			if err := o.Locate(mapper(), "shop"); err != nil {
				t.Fatal(err)
			}
			if !o.Known() || o.Located().Resource != tt.resource || o.GetNamespace() != tt.namespace {
				t.Errorf("%s in namespace %q", o.Located(), o.GetNamespace())
			}
		})
	}
	err := object(t, "{apiVersion: example.com/v1, kind: Widget}").Locate(mapper(), "shop")
	if err == nil || !strings.HasPrefix(err.Error(), "finding kind example.com/v1, Kind=Widget: ") || !meta.IsNoMatchError(err) {
		t.Errorf("error %v", err)
	}
}

func TestKindsMayBeDefinedInTheSamePackage(t *testing.T) {
	crd := object(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: w}, spec: {group: example.com, names: {kind: Widget}}}")
	widget := object(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}")
	gadget := object(t, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}}")
	if err := LocateAll([]*Object{crd, widget}, mapper(), "shop"); err != nil {
		t.Error(err)
	}
	if err := LocateAll([]*Object{crd, widget, gadget}, mapper(), "shop"); !meta.IsNoMatchError(err) {
		t.Errorf("undefined kind: got error %v, want a NoMatchError", err)
	}
	found, err := LocateSome([]*Object{widget, crd, gadget}, mapper(), "shop")
	if err != nil || len(found) != 1 || found[0] != crd {
		t.Errorf("found %v, error %v; want the definition only", found, err)
	}
}

func TestWithoutServerFields(t *testing.T) {
	u := parsed(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  uid: u
  resourceVersion: "7"
  generation: 3
  creationTimestamp: "2024-01-01T00:00:00Z"
  selfLink: /a
  managedFields: [{manager: m}]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
  labels: {team: a}
data: {k: v}
status: {phase: Good}
`)
	before := u.DeepCopy()
	want := parsed(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {team: a}}, data: {k: v}}")
	if diff := cmp.Diff(want.Object, WithoutServerFields(u)); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, u); diff != "" {
		t.Errorf("the object itself was changed (-want +got):\n%s", diff)
	}
	kept := parsed(t, "{metadata: {annotations: {a: b, kubectl.kubernetes.io/last-applied-configuration: x}}}")
	if diff := cmp.Diff(parsed(t, "{metadata: {annotations: {a: b}}}").Object, WithoutServerFields(kept)); diff != "" {
		t.Errorf("other annotations (-want +got):\n%s", diff)
	}
}

func TestFieldDiff(t *testing.T) {
	for name, tt := range map[string]struct{ before, after, want string }{
		"nothing":                      {"{}", "{}", ""},
		"the same":                     {"{a: 1, b: [x, {c: y}]}", "{a: 1, b: [x, {c: y}]}", ""},
		"another value":                {"{a: 1}", "{a: 2}", "a: 1 → 2"},
		"another type":                 {`{a: "1"}`, "{a: 1}", `a: "1" → 1`},
		"null":                         {"{a: null}", "{a: 1}", "a: null → 1"},
		"an object for a value":        {"{a: {b: 1}}", "{a: 1}", `a: {"b":1} → 1`},
		"a list for an object":         {"{a: {b: 1}}", "{a: [1]}", `a: {"b":1} → [1]`},
		"a new object":                 {"{}", "{a: {b: 1, c: [2]}}", "+ a.b: 1\n+ a.c[0]: 2"},
		"an object less":               {"{a: {b: 1}}", "{}", "- a.b: 1"},
		"a longer list":                {"{a: [1]}", "{a: [1, {b: 2}]}", "+ a[1].b: 2"},
		"a shorter list":               {"{a: [1, 2]}", "{a: [2]}", "a[0]: 1 → 2\n- a[1]: 2"},
		"keys with separators":         {"{m: {a.b/c: 1}}", "{m: {a.b/c: 2}}", "m[a.b/c]: 1 → 2"},
		"a Secret":                     {"{kind: Secret, apiVersion: v1, stringData: {a: x}, type: T}", "{kind: Secret, apiVersion: v1, stringData: {a: y}, type: U}", "stringData.a: *** → ***\ntype: \"T\" → \"U\""},
		"a Secret of others":           {"{kind: Secret, apiVersion: example.com/v1, data: 1}", "{kind: Secret, apiVersion: example.com/v1, data: 2}", "data: 1 → 2"},
		"a kind that becomes a Secret": {"{kind: ConfigMap, apiVersion: v1, data: {a: x}}", "{kind: Secret, apiVersion: v1, data: {a: y}}", "data.a: *** → ***\nkind: \"ConfigMap\" → \"Secret\""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, FieldDiff(parsed(t, tt.before).Object, parsed(t, tt.after).Object)); diff != "" {
				t.Errorf("diff (-want +got):\n%s", diff)
			}
		})
	}
	if got := FieldDiff(nil, parsed(t, "{b: 1, a: {c: []}}").Object); got != "+ b: 1" {
		t.Errorf("a creation is %q", got)
	}
}

func TestDiffsAreBounded(t *testing.T) {
	after := map[string]any{}
	for i := range maxLines + 7 {
		after[fmt.Sprintf("f%03d", i)] = strings.Repeat("é", 500)
	}
	lines := strings.Split(FieldDiff(map[string]any{}, after), "\n")
	if len(lines) != maxLines+1 || lines[maxLines] != "… and 7 more" {
		t.Errorf("%d lines, the last one %q", len(lines), lines[len(lines)-1])
	}
	if got := len(lines[0]); got > maxValueLength+len("+ f000: ") || !utf8.ValidString(lines[0]) {
		t.Errorf("a value has %d bytes", got)
	}
}

func TestCreation(t *testing.T) {
	got := Creation(object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u}, data: {k: v}}"))
	want := tool.Change{
		Object: tool.Object{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Name: "a"}, Action: tool.Create,
		Diff: "+ apiVersion: \"v1\"\n+ data.k: \"v\"\n+ kind: \"ConfigMap\"\n+ metadata.name: \"a\"",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
}

func TestSplitPointer(t *testing.T) {
	for path, want := range map[string][]string{
		"/spec/replicas": {"spec", "replicas"}, "spec": {"spec"}, "/a~1b/c~0d": {"a/b", "c~d"}, "/~01": {"~1"}, "": {""}, "/a//b": {"a", "", "b"},
	} {
		if diff := cmp.Diff(want, splitPointer(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestIgnoreRulesMatch(t *testing.T) {
	o := parsed(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}")
	for name, tt := range map[string]struct {
		rule addonsv1.IgnoreRule
		want bool
	}{
		"everything":        {addonsv1.IgnoreRule{}, true},
		"all that it names": {addonsv1.IgnoreRule{Group: "apps", Kind: "Deployment", Name: "web", Namespace: "shop"}, true},
		"another group":     {addonsv1.IgnoreRule{Group: "batch"}, false},
		"another kind":      {addonsv1.IgnoreRule{Kind: "StatefulSet"}, false},
		"another name":      {addonsv1.IgnoreRule{Name: "db"}, false},
		"another namespace": {addonsv1.IgnoreRule{Namespace: "default"}, false},
	} {
		tt.rule.Paths = []string{"/spec/replicas"}
		if got := len(Pointers([]addonsv1.IgnoreRule{tt.rule}, o)) == 1; got != tt.want {
			t.Errorf("%s: matches: %t", name, got)
		}
	}
}

func TestFieldsThatDoNotExist(t *testing.T) {
	const text = "{spec: {list: [{a: 1}, {a: 2}], text: x}}"
	for _, path := range [][]string{
		{"missing"},
		{"missing", "below"},
		{"spec", "text", "below"},
		{"spec", "list", "7"},
		{"spec", "list", "-1"},
		{"spec", "list", "first"},
		{"spec", "list", "0", "a", "b"},
	} {
		u := parsed(t, text)
		if _, ok := fieldAt(u.Object, path); ok {
			t.Errorf("%v exists", path)
		}
		removeField(u.Object, path)
		if diff := cmp.Diff(parsed(t, text).Object, u.Object); diff != "" {
			t.Errorf("removing %v changes something (-want +got):\n%s", path, diff)
		}
	}
	u := parsed(t, text)
	setField(u.Object, []string{"missing", "below"}, 1)
	setField(u.Object, []string{"spec", "list", "7"}, 1)
	if diff := cmp.Diff(parsed(t, text).Object, u.Object); diff != "" {
		t.Errorf("setting a field without a parent changes something (-want +got):\n%s", diff)
	}
	removeField(u.Object, []string{"spec", "list", "0"})
	if diff := cmp.Diff(parsed(t, "{spec: {list: [{a: 2}], text: x}}").Object, u.Object); diff != "" {
		t.Errorf("removing an entry of a list (-want +got):\n%s", diff)
	}
	wanted := parsed(t, text)
	if got := WithLive(wanted, parsed(t, "{}"), nil); got != wanted {
		t.Error("an object without ignored fields is copied")
	}
}

func TestCondition(t *testing.T) {
	u := parsed(t, `{status: {conditions: [7, {type: A, status: "True"}, {type: B, status: false}, {type: A, status: "False"}]}}`)
	for kind, want := range map[string]string{"A": "True", "B": "", "C": ""} {
		if got := Condition(u, kind); got != want {
			t.Errorf("condition %s is %q, want %q", kind, got, want)
		}
	}
	if got := Condition(&unstructured.Unstructured{Object: map[string]any{}}, "A"); got != "" {
		t.Errorf("an object without status has condition %q", got)
	}
}

func TestEvaluate(t *testing.T) {
	c := NewChecker()
	check := func(current, failed string) []addonsv1.HealthCheck {
		return []addonsv1.HealthCheck{{APIVersion: "v1", Kind: "Other", Current: "false"}, {APIVersion: "example.com/v1", Kind: "Widget", Current: current, Failed: failed}}
	}
	const widget = "apiVersion: example.com/v1\nkind: Widget\n"
	for name, tt := range map[string]struct {
		live   string
		checks []addonsv1.HealthCheck
		want   Verdict
	}{
		"a completed Job":        {"{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: 'True'}]}}", nil, Verdict{Ready: true, Reason: "has not completed"}},
		"a failed Job":           {"{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: 'True'}]}}", nil, Verdict{Failed: true, Reason: "has not completed"}},
		"a running Job":          {"{apiVersion: batch/v1, kind: Job}", nil, Verdict{Reason: "has not completed"}},
		"an expression holds":    {widget + "status: {phase: Good}", check("self.status.phase == 'Good'", ""), Verdict{Ready: true, Reason: "does not meet its health expression"}},
		"a field is not set":     {widget, check("self.status.n >= 2", "self.status.bad"), Verdict{Reason: "does not meet its health expression"}},
		"a result of other type": {widget, check("'yes'", ""), Verdict{Reason: "does not meet its health expression"}},
		"strings and lists":      {widget + "spec: {a: [p, q]}", check("self.spec.a.join('-') == 'p-q'", ""), Verdict{Ready: true, Reason: "does not meet its health expression"}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time with compiled expressions
				got, err := c.Evaluate(t.Context(), parsed(t, tt.live), tt.checks)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("verdict (-want +got):\n%s", diff)
				}
			}
		})
	}
	var terminal *tool.TerminalError
	if _, err := c.Evaluate(t.Context(), parsed(t, widget), check("self.(", "")); !errors.As(err, &terminal) || !strings.Contains(err.Error(), `"self.("`) {
		t.Errorf("error %v is not terminal, or does not quote the expression", err)
	}
	expensive := "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, true))))))"
	if got, err := c.Evaluate(t.Context(), parsed(t, widget), check(expensive, "")); err != nil || got.Ready {
		t.Errorf("an expensive expression is evaluated to the end: %+v, error %v", got, err)
	}
}

func TestSummaryOfReadyObjects(t *testing.T) {
	for name, verdicts := range map[string][]Verdict{"none": nil, "all ready": {{Title: "A", Ready: true, Reason: "is fine"}}} {
		if got := Summary(verdicts); !got.Ready || got.Failed || got.Message != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	long := Summary([]Verdict{{Title: "A", Reason: strings.Repeat("ü ", 500)}})
	if len(long.Message) > maxReasonLength+len("A: ") || !utf8.ValidString(long.Message) {
		t.Errorf("the message has %d bytes", len(long.Message))
	}
}

func TestInParallel(t *testing.T) {
	var running, most, calls atomic.Int32
	count := func(ctx context.Context, _ int) error {
		n := running.Add(1)
		defer running.Add(-1)
		m := most.Load()
		for n > m && !most.CompareAndSwap(m, n) {
			m = most.Load()
		}
		calls.Add(1)
		return ctx.Err()
	}
	for _, n := range []int{0, 1, parallel, 50} {
		calls.Store(0)
		if err := InParallel(t.Context(), make([]int, n), count); err != nil || int(calls.Load()) != n {
			t.Errorf("%d items: %d calls, error %v", n, calls.Load(), err)
		}
	}
	if most.Load() > parallel {
		t.Errorf("%d calls at a time, want at most %d", most.Load(), parallel)
	}
	first := errors.New("first")
	calls.Store(0)
	err := InParallel(t.Context(), Indexes(make([]int, 1000)), func(ctx context.Context, i int) error {
		calls.Add(1)
		if i == 0 {
			return first
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, first) || calls.Load() > parallel {
		t.Errorf("error %v after %d calls, want the first one and no further calls", err, calls.Load())
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := InParallel(canceled, make([]int, 2), count); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v with a canceled context", err)
	}
}

func TestIndexes(t *testing.T) {
	if diff := cmp.Diff([]int{0, 1, 2}, Indexes([]string{"a", "b", "c"})); diff != "" {
		t.Error(diff)
	}
	if got := Indexes[string](nil); len(got) != 0 {
		t.Errorf("indexes %v of nothing", got)
	}
}

func TestGroupsOfNothing(t *testing.T) {
	if got := Groups[*Object](nil); got != nil {
		t.Errorf("groups %v", got)
	}
}

func TestRedact(t *testing.T) {
	secret := map[string]any{"a": "hunter22", "b": []any{"hunter", true, nil, 31337, "abc"}, "c": map[string]any{"d": " padded line \nnext"}}
	for in, want := range map[string]string{
		"nothing to see":        "nothing to see",
		"hunter22 and hunter":   "*** and ***",
		"port 31337, abc, true": "port ***, abc, true",
		"got padded line":       "got ***",
		base64.StdEncoding.EncodeToString([]byte("hunter22")): "***",
	} {
		if got := Redact(errors.New(in), secret).Error(); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if Redact(nil, secret) != nil {
		t.Error("no error becomes one")
	}
	cause := errors.New(strings.Repeat("é", maxErrorLength))
	err := Redact(cause, nil)
	if !errors.Is(err, cause) || len(err.Error()) > maxErrorLength || !utf8.ValidString(err.Error()) {
		t.Errorf("a long error has %d bytes, and keeps its cause: %t", len(err.Error()), errors.Is(err, cause))
	}
}

func TestClassify(t *testing.T) {
	status := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message, Status: metav1.StatusFailure}}
	}
	for name, tt := range map[string]struct {
		err      error
		terminal bool
	}{
		"nothing":              {nil, false},
		"a lost connection":    {errors.New("connection refused"), false},
		"not found":            {apierrors.NewNotFound(schema.GroupResource{}, "x"), false},
		"a conflict":           {apierrors.NewConflict(schema.GroupResource{}, "x", nil), false},
		"an invalid object":    {apierrors.NewInvalid(schema.GroupKind{}, "x", nil), true},
		"a bad request":        {fmt.Errorf("writing: %w", apierrors.NewBadRequest("no")), true},
		"a large object":       {apierrors.NewRequestEntityTooLargeError("no"), true},
		"a read-only resource": {apierrors.NewMethodNotSupported(schema.GroupResource{}, "patch"), true},
		"a wrong type":         {status(http.StatusInternalServerError, "failed to create typed patch object (a/b): x"), true},
		"a server error":       {status(http.StatusInternalServerError, "etcd is away"), false},
		"one that is already":  {&tool.TerminalError{Err: errors.New("x")}, true},
	} {
		var terminal *tool.TerminalError
		if got := Classify(tt.err); errors.As(got, &terminal) != tt.terminal || !errors.Is(got, tt.err) {
			t.Errorf("%s: %v, terminal: %t", name, got, !tt.terminal)
		}
	}
}

func TestFailedNamesTheObject(t *testing.T) {
	w := &Writer{Want: tool.Want{Values: map[string]any{"password": "hunter22"}}}
	o := object(t, "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: shop}}")
	if w.Failed("applying", o, nil) != nil {
		t.Error("no error becomes one")
	}
	if got, want := w.Failed("applying", o, errors.New("bad value hunter22")).Error(), `applying Secret "shop/db": bad value ***`; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func TestValidation(t *testing.T) {
	w := &Writer{}
	if got := w.Validation(); got != metav1.FieldValidationStrict {
		t.Errorf("validation %q", got)
	}
	w.Want.Options.DisableOpenAPIValidation = true
	if got := w.Validation(); got != metav1.FieldValidationIgnore {
		t.Errorf("got validation %q, want Ignore: it is disabled", got)
	}
}

func TestChecksWithoutACluster(t *testing.T) {
	c, w := NewChecker(), &Writer{}
	if v, err := c.Check(t.Context(), w, object(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}")); err != nil || v.Ready || v.Reason != "kind is not served yet" || v.Title != `Widget "a"` {
		t.Errorf("verdict %+v, error %v", v, err)
	}
	job := object(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: a}}")
	job.Resource.Resource = "jobs"
	if v, err := c.Check(t.Context(), w, job); err != nil || !v.Ready {
		t.Errorf("Job without a waiter: got %+v, error %v", v, err)
	}
}

func FuzzFieldDiff(f *testing.F) {
	f.Add("{a: 1}", "{a: [1]}")
	f.Add("{kind: Secret, apiVersion: v1, data: {a: canary}}", "{}")
	f.Fuzz(func(t *testing.T, before, after string) {
		a, b := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if a.UnmarshalJSON([]byte(before)) != nil || b.UnmarshalJSON([]byte(after)) != nil {
			return
		}
		if got := FieldDiff(a.Object, a.Object); got != "" {
			t.Errorf("an object differs from itself: %s", got)
		}
		if got := strings.Count(FieldDiff(a.Object, b.Object), "\n"); got > maxLines {
			t.Errorf("%d lines", got+1)
		}
	})
}
