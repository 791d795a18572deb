package helm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/test/workloadtest"
	"github.com/drover-dev/drover/internal/workload/tool"
)

func TestInstallMakesOneRequestPerObject(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", four))
	want.Values = map[string]any{"greeting": "good day"}
	b.wire.Restart()

	state := b.mustApply(t, want)

	ns := b.namespace
	requests := []string{
		"POST /api/v1/namespaces",
		"POST /api/v1/namespaces/" + ns + "/secrets",
		"PATCH /api/v1/namespaces/" + ns + "/serviceaccounts/web",
		"PATCH /api/v1/namespaces/" + ns + "/configmaps/web",
		"PATCH /api/v1/namespaces/" + ns + "/services/web",
		"PATCH /apis/apps/v1/namespaces/" + ns + "/deployments/web",
		"PUT /api/v1/namespaces/" + ns + "/secrets/sh.helm.release.v1.web.v1",
	}
	if diff := cmp.Diff(requests, b.wire.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if state.Status != tool.Deployed || state.Revision != 1 || !state.Found {
		t.Errorf("state %+v, want revision 1 deployed", state)
	}
	config, err := b.server.Clientset(t).CoreV1().ConfigMaps(ns).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if config.Data["greeting"] != "good day" || config.Labels[managedByLabel] != "Helm" || config.Annotations[nameAnnotation] != "web" ||
		config.Annotations[namespaceAnnotation] != ns {
		t.Errorf("the object %+v has not what the chart and Helm put there", config)
	}

	b.observed(t, want, state)
	b.wire.Restart()
	if again := b.mustApply(t, want); again != state {
		t.Errorf("state %+v after a second call, want %+v", again, state)
	}
	if diff := cmp.Diff([]string{"GET /api/v1/namespaces/" + ns + "/secrets/sh.helm.release.v1.web.v1"}, b.wire.Requests()); diff != "" {
		t.Errorf("requests of a call that changes nothing (-want +got):\n%s", diff)
	}
	b.wire.Restart()
	if _, err := b.Observe(b.cluster, want.ID); err != nil || len(b.wire.Requests()) > 0 {
		t.Errorf("observing made the requests %v (error %v), want none", b.wire.Requests(), err)
	}
}

func TestUpgradeAppliesAndPrunes(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", four))
	b.observed(t, want, b.mustApply(t, want))
	want.Resolved = b.put(t, "1.1.0", with(four, map[string]string{
		"templates/service.yaml": "",
		"templates/secret.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Release.Name }}'}\nstringData: {a: b}\n",
	}))
	b.wire.Restart()

	state := b.mustApply(t, want)

	ns := "/api/v1/namespaces/" + b.namespace
	requests := []string{
		"GET " + ns + "/secrets/sh.helm.release.v1.web.v1",
		"POST " + ns + "/secrets",
		"PATCH " + ns + "/serviceaccounts/web",
		"PATCH " + ns + "/secrets/web",
		"PATCH " + ns + "/configmaps/web",
		"PATCH /apis/apps/v1/namespaces/" + b.namespace + "/deployments/web",
		"GET " + ns + "/services/web",
		"DELETE " + ns + "/services/web",
		"PUT " + ns + "/secrets/sh.helm.release.v1.web.v1",
		"PUT " + ns + "/secrets/sh.helm.release.v1.web.v2",
	}
	if diff := cmp.Diff(requests, b.wire.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1 superseded", "2 deployed"}, b.statuses(t, "web")); diff != "" || state.Revision != 2 {
		t.Errorf("revision %d, revisions (-want +got):\n%s", state.Revision, diff)
	}
	_, err := b.server.Clientset(t).CoreV1().Services(b.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("service that the chart dropped: got error %v, want NotFound", err)
	}
}

func TestUninstallKeepsOnlyAnnotatedObjects(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", with(four, map[string]string{
		"templates/kept.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n",
	})))
	b.mustApply(t, want)
	for range 2 { // the second has nothing to do
		if err := b.Remove(t.Context(), b.cluster, want); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.statuses(t, "web"); got != nil {
		t.Errorf("revisions %v, want none", got)
	}
	for name, want := range map[string]bool{"web": false, "kept": true} {
		_, err := b.server.Clientset(t).CoreV1().ConfigMaps(b.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if (err == nil) != want {
			t.Errorf("ConfigMap %q: error %v, want there: %t", name, err, want)
		}
	}
}

// Whichever request is a process's last, the next process completes the operation: one deployed
// revision, and no unnecessary requests.
func TestInterruptedOperationConverges(t *testing.T) {
	changed := with(four, map[string]string{
		"templates/service.yaml": "",
		"templates/secret.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Release.Name }}'}\nstringData: {a: b}\n",
	})
	for name, how := range map[string]cutShort{
		"not sent":                       {},
		"answer lost":                    {how: workloadtest.Lost},
		"answer lost, and a new process": {how: workloadtest.Lost, restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.sync(t)
			c := cutShort{bench: b, how: how.how, restart: how.restart}
			first, second := b.put(t, "1.0.0", four), b.put(t, "1.1.0", changed)
			c.each(t, "install", func(*testing.T, tool.Want) {}, func(t *testing.T, want tool.Want) error {
				want.Resolved = first
				_, err := b.Apply(t.Context(), b.cluster, want)
				return err
			}, []string{"1 deployed"})
			install := func(t *testing.T, want tool.Want) {
				want.Resolved = first
				b.observed(t, want, b.mustApply(t, want))
			}
			c.each(t, "upgrade", install, func(t *testing.T, want tool.Want) error {
				want.Resolved = second
				_, err := b.Apply(t.Context(), b.cluster, want)
				return err
			}, []string{"1 superseded", "2 deployed"})
			c.each(t, "remove", install, func(t *testing.T, want tool.Want) error {
				want.Resolved = first
				return b.Remove(t.Context(), b.cluster, want)
			}, nil)
			upgrade := func(t *testing.T, want tool.Want) {
				install(t, want)
				want.Resolved = second
				b.observed(t, want, b.mustApply(t, want))
			}
			c.each(t, "revert", upgrade, func(t *testing.T, want tool.Want) error {
				_, err := b.Revert(t.Context(), b.cluster, want, 1)
				return err
			}, []string{"1 superseded", "2 superseded", "3 deployed"})
		})
	}
}

type cutShort struct {
	*bench
	how     string
	restart bool
}

// each interrupts an operation at its first request, at its second, and so on, until it completes.
func (c cutShort) each(t *testing.T, name string, before func(*testing.T, tool.Want), do func(*testing.T, tool.Want) error, revisions []string) {
	t.Helper()
	for n := 1; ; n++ {
		want := tool.Want{ID: c.id(fmt.Sprintf("%s-%d", name, n))}
		before(t, want)
		c.wire.Cut(n, c.how)
		err := do(t, want)
		cut := c.wire.WasCut()
		if cut && (err == nil || isTerminal(err)) {
			t.Errorf("%s cut at request %d: error %v, want one that can be retried", name, n, err)
		}
		c.wire.Restart()
		if c.restart {
			c.bench.restart(t)
			c.sync(t)
		}
		if err := do(t, want); err != nil {
			t.Fatalf("%s cut at request %d, then: %v", name, n, err)
		}
		if diff := cmp.Diff(revisions, c.statuses(t, want.ID.Name)); diff != "" {
			t.Fatalf("revisions after %s was cut at request %d (-want +got):\n%s", name, n, diff)
		}
		if !cut {
			if n < 3 {
				t.Errorf("%s made %d requests, the test cuts nothing", name, n)
			}
			return
		}
	}
}

func TestErrorsOmitValues(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	const canary = "canary-7f3a"
	n := 0
	for name, template := range map[string]string{
		"a template that fails": `{{ fail (printf "bad password %s" .Values.password) }}`,
		"an object that the API server refuses": "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n" +
			"spec: {type: '{{ .Values.password }}', ports: [{port: 1}]}\n",
		"a field of the wrong type":  "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: '{{ .Values.password }}'}\n",
		"a document that is no YAML": "a: {{ .Values.password }}\n b: [",
	} {
		t.Run(name, func(t *testing.T) {
			n++
			want := b.want(fmt.Sprintf("leak-%d", n), b.put(t, "1.0.0", map[string]string{"templates/x.yaml": template}))
			want.Values = map[string]any{"password": canary}
			_, err := b.Apply(t.Context(), b.cluster, want)
			var terminal *tool.TerminalError
			if !errors.As(err, &terminal) {
				t.Fatalf("error %v, want a terminal one", err)
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error quotes a value: %v", err)
			}
			t.Log(err)
		})
	}
}
