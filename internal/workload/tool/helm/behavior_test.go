package helm

import (
	"bytes"
	"errors"
	"log"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/test/workloadtest"
	"github.com/drover-dev/drover/internal/workload/tool"
)

func isTerminal(err error) bool {
	var terminal *tool.TerminalError
	return errors.As(err, &terminal)
}

func (b *bench) greeting(t *testing.T, name string) string {
	t.Helper()
	config, err := b.server.Clientset(t).CoreV1().ConfigMaps(b.namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return config.Data["greeting"]
}

func TestValuesAreReplacedUnlessReused(t *testing.T) {
	tests := map[string]struct {
		options addonsv1.HelmUpgradeOptions
		want    string
		again   int
	}{
		"emptied":             {want: "hello", again: 2},
		"reset":               {options: addonsv1.HelmUpgradeOptions{ResetValues: true}, want: "hello", again: 2},
		"reused":              {options: addonsv1.HelmUpgradeOptions{ReuseValues: true}, want: "hi", again: 1},
		"reset, then reused":  {options: addonsv1.HelmUpgradeOptions{ResetThenReuseValues: true}, want: "hi", again: 1},
		"reset above reusing": {options: addonsv1.HelmUpgradeOptions{ResetValues: true, ReuseValues: true}, want: "hello", again: 2},
	}
	b := newBench(t)
	b.sync(t)
	chart := b.put(t, "1.0.0", four)
	n := 0
	for name, tt := range tests {
		n++
		release := "values-" + string(rune('a'+n))
		t.Run(name, func(t *testing.T) {
			want := b.want(release, chart)
			want.Values = map[string]any{"greeting": "hi"}
			b.mustApply(t, want)
			want.Values, want.Options.Upgrade = nil, tt.options
			for range 3 {
				if state := b.mustApply(t, want); state.Revision != tt.again {
					t.Fatalf("revision %d, want %d", state.Revision, tt.again)
				}
			}
			if got := b.greeting(t, release); got != tt.want {
				t.Errorf("greeting %q, want %q", got, tt.want)
			}
		})
	}
}

func TestForeignObjectsAreNotAdopted(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Data: map[string]string{"greeting": "mine"}}
	configs := b.server.Clientset(t).CoreV1().ConfigMaps(b.namespace)
	if _, err := configs.Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	want := b.want("web", b.put(t, "1.0.0", four))
	_, err := b.Apply(t.Context(), b.cluster, want)
	if !isTerminal(err) || !strings.Contains(err.Error(), "takeOwnership") {
		t.Fatalf("error %v, want a terminal one that names takeOwnership", err)
	}
	if got := b.greeting(t, "web"); got != "mine" {
		t.Errorf("got greeting %q, want it unchanged", got)
	}
	if diff := cmp.Diff([]string{"1 failed"}, b.statuses(t, "web")); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	want.Options.TakeOwnership = true
	b.mustApply(t, want)
	if got := b.greeting(t, "web"); got != "hello" {
		t.Errorf("greeting %q, want the chart's", got)
	}
	if diff := cmp.Diff([]string{"1 deployed"}, b.statuses(t, "web")); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	other := b.want("other", b.put(t, "2.0.0", map[string]string{
		"templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: stolen}\n",
	}))
	if _, err := b.Apply(t.Context(), b.cluster, other); !isTerminal(err) || !strings.Contains(err.Error(), "owned by release") {
		t.Errorf("error %v, want a terminal one that names the owner", err)
	}
}

func TestHistoryIsLimited(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	chart := b.put(t, "1.0.0", four)
	for name, tt := range map[string]struct {
		max  *int
		want int
	}{"default": {nil, 10}, "two": {ptr.To(2), 2}, "all": {ptr.To(0), 12}} {
		t.Run(name, func(t *testing.T) {
			want := b.want("history-"+name, chart)
			want.Options.Upgrade.MaxHistory = tt.max
			for i := range 12 {
				want.Values = map[string]any{"replicas": i}
				b.observed(t, want, b.mustApply(t, want))
			}
			if got := b.statuses(t, want.ID.Name); len(got) != tt.want || got[len(got)-1] != "12 deployed" {
				t.Errorf("revisions %v, want %d of them", got, tt.want)
			}
		})
	}
}

func TestReinstallContinuesKeptHistory(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", four))
	want.Options.Uninstall = &addonsv1.HelmUninstallOptions{KeepHistory: true, Description: "enough of it"}
	b.mustApply(t, want)
	for range 2 {
		if err := b.Remove(t.Context(), b.cluster, want); err != nil {
			t.Fatal(err)
		}
	}
	revisions, err := b.History(t.Context(), b.cluster, want.ID)
	if err != nil || len(revisions) != 1 || revisions[0].Status != tool.Uninstalled || revisions[0].Description != "enough of it" {
		t.Fatalf("history %+v (error %v), want one uninstalled revision with its description", revisions, err)
	}
	b.mustApply(t, want)
	if diff := cmp.Diff([]string{"1 superseded", "2 deployed"}, b.statuses(t, "web")); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	want.Options.Uninstall = nil
	if err := b.Remove(t.Context(), b.cluster, want); err != nil {
		t.Fatal(err)
	}
	if got := b.statuses(t, "web"); got != nil {
		t.Errorf("revisions %v, want none", got)
	}
}

func TestRollbackCreatesARevision(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", four))
	for _, greeting := range []string{"one", "two", "three"} {
		want.Values = map[string]any{"greeting": greeting}
		b.observed(t, want, b.mustApply(t, want))
	}
	state, err := b.Revert(t.Context(), b.cluster, want, 0)
	if err != nil || state.Revision != 4 || b.greeting(t, "web") != "two" {
		t.Fatalf("state %+v, greeting %q, error %v, want revision 4 like 2", state, b.greeting(t, "web"), err)
	}
	b.observed(t, want, state)
	for range 2 { // the second has nothing to do
		state, err = b.Revert(t.Context(), b.cluster, want, 1)
		if err != nil || state.Revision != 5 || b.greeting(t, "web") != "one" {
			t.Fatalf("state %+v, greeting %q, error %v, want revision 5 like 1", state, b.greeting(t, "web"), err)
		}
		b.observed(t, want, state)
	}
	if _, err := b.Revert(t.Context(), b.cluster, want, 99); !isTerminal(err) {
		t.Errorf("error %v, want a terminal one for a revision that never was", err)
	}
	revisions, err := b.History(t.Context(), b.cluster, want.ID)
	if err != nil || len(revisions) != 5 || revisions[0].Description != "Rollback to 1" || revisions[0].Package != "app-1.0.0" {
		t.Errorf("history %+v (error %v), want five revisions, the newest first", revisions, err)
	}
}

func TestNamespaceIsCreatedOnlyIfConfigured(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", four))
	want.ID.Namespace = b.namespace + "-new"
	want.Options.Install.CreateNamespace = ptr.To(false)
	if _, err := b.Apply(t.Context(), b.cluster, want); err == nil || isTerminal(err) {
		t.Fatalf("error %v, want one that a retry may mend", err)
	}
	want.Options.Install.CreateNamespace = ptr.To(true)
	b.mustApply(t, want)
}

func TestForceReplacesForeignFields(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", four))
	b.observed(t, want, b.mustApply(t, want))
	configs := b.server.Clientset(t).CoreV1().ConfigMaps(b.namespace)
	add := func() {
		patch := []byte(`{"data":{"added":"x"}}`)
		if _, err := configs.Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		force bool
		want  map[string]string
	}{
		"without": {false, map[string]string{"greeting": "without", "added": "x"}},
		"with":    {true, map[string]string{"greeting": "with"}},
	} {
		t.Run(name, func(t *testing.T) {
			add()
			want.Options.Upgrade.Force, want.Values = tt.force, map[string]any{"greeting": name}
			b.observed(t, want, b.mustApply(t, want))
			config, err := configs.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, config.Data); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailedUpgradeCleansUpOnlyIfConfigured(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	chart := b.put(t, "1.0.0", four)
	broken := b.put(t, "1.1.0", with(four, map[string]string{
		"templates/more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-more'}\n",
		"templates/bad.yaml":  "apiVersion: batch/v1\nkind: Job\nmetadata: {name: '{{ .Release.Name }}'}\nspec: {unknown: 1}\n",
	}))
	for name, cleanup := range map[string]bool{"kept": false, "cleaned": true} {
		t.Run(name, func(t *testing.T) {
			want := b.want(name, chart)
			b.observed(t, want, b.mustApply(t, want))
			want.Resolved, want.Options.Upgrade.CleanupOnFail = broken, cleanup
			_, err := b.Apply(t.Context(), b.cluster, want)
			if !isTerminal(err) || !strings.Contains(err.Error(), "unknown") {
				t.Fatalf("error %v, want a terminal one that names the field", err)
			}
			if diff := cmp.Diff([]string{"1 deployed", "2 failed"}, b.statuses(t, name)); diff != "" {
				t.Errorf("revisions (-want +got):\n%s", diff)
			}
			_, err = b.server.Clientset(t).CoreV1().ConfigMaps(b.namespace).Get(t.Context(), name+"-more", metav1.GetOptions{})
			if apierrors.IsNotFound(err) != cleanup {
				t.Errorf("the object that the upgrade made: error %v, want gone: %t", err, cleanup)
			}
			// Objects of a failed revision are deleted with the next.
			want.Resolved = b.put(t, "1.2.0", four)
			b.mustApply(t, want)
			_, err = b.server.Clientset(t).CoreV1().ConfigMaps(b.namespace).Get(t.Context(), name+"-more", metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("what the failed revision left: error %v, want gone", err)
			}
		})
	}
}

func TestValuesAreNotLogged(t *testing.T) {
	const canary = "canary-51c9"
	var out bytes.Buffer
	previous := log.Writer()
	log.SetOutput(redactingWriter{&out})
	defer log.SetOutput(previous)
	b := newBench(t)
	b.sync(t)
	chart := with(four, map[string]string{
		"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.yaml": "global: {a: {b: {c: 1}}}\n",
	})
	want := b.want("web", b.put(t, "1.0.0", chart))
	want.Values = map[string]any{
		"greeting": map[string]any{"x": canary}, "global": map[string]any{"a": map[string]any{"b": map[string]any{"c": 1}}},
		"sub": map[string]any{"global": map[string]any{"a": map[string]any{"b": canary}}},
	}
	b.mustApply(t, want)
	log.Print("somebody else's line")
	if strings.Contains(out.String(), canary) || !strings.Contains(out.String(), "somebody else's line") {
		t.Errorf("the log has %q, want everything but values", out.String())
	}
}

func TestTemplatesCanUseLookup(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", with(four, map[string]string{
		"templates/seen.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: seen}
data:
  namespace: '{{ (lookup "v1" "Namespace" "" .Release.Namespace).metadata.name }}'
  none: '{{ (lookup "v1" "ConfigMap" .Release.Namespace "never-there") | len }}'
  kind: '{{ .Capabilities.APIVersions.Has "apps/v1/Deployment" }}'
  version: '{{ .Capabilities.KubeVersion.Version }}'
`,
	})))
	b.mustApply(t, want)
	config, err := b.server.Clientset(t).CoreV1().ConfigMaps(b.namespace).Get(t.Context(), "seen", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	version, err := b.cluster.Version()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"namespace": b.namespace, "none": "0", "kind": "true", "version": version.GitVersion}, config.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func TestFailedLookupIsRetriable(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", with(four, map[string]string{
		"templates/seen.yaml": `{{ lookup "v1" "Namespace" "" "default" | len }}`,
	})))
	b.wire.Cut(1, "")
	if _, err := b.Apply(t.Context(), b.cluster, want); !errors.Is(err, workloadtest.ErrCut) || isTerminal(err) {
		t.Errorf("error %v, want one that can be retried", err)
	}
}

func TestValuesAreValidatedAgainstTheSchema(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", with(four, map[string]string{
		"values.schema.json": `{"properties": {"replicas": {"type": "integer"}}}`,
	})))
	want.Values = map[string]any{"replicas": "canary-many"}
	_, err := b.Apply(t.Context(), b.cluster, want)
	if !isTerminal(err) || !strings.Contains(err.Error(), "replicas") || strings.Contains(err.Error(), "canary-many") {
		t.Errorf("error %v, want a terminal one that names the value, not what it is", err)
	}
	if got := b.statuses(t, "web"); got != nil {
		t.Errorf("revisions %v, want none", got)
	}
}
