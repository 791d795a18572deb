package manifests

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/test/workloadtest"
	"github.com/drover-dev/drover/internal/workload/tool"
)

func TestApplyWritesEachObjectOnceAndPrunes(t *testing.T) {
	b := newBench(t)
	path := func(kind string) string { return "/api/v1/namespaces/" + b.namespace + "/" + kind }
	want := b.want(t, "web", "1.0.0", three)
	state := b.mustApply(t, want)
	if state.Revision != 1 || state.Status != tool.Deployed {
		t.Errorf("state %+v, want revision 1 deployed", state)
	}
	requests := []string{
		"POST " + path("secrets"), "PATCH " + path("serviceaccounts/web"), "PATCH " + path("configmaps/web"), "PATCH " + path("services/web"),
		"PUT " + path("secrets/drover.addon.web"),
	}
	if diff := cmp.Diff(requests, b.cluster.Requests()); diff != "" {
		t.Errorf("requests of an installation (-want +got):\n%s", diff)
	}
	b.cluster.Restart()
	if again := b.mustApply(t, want); again != state {
		t.Errorf("state %+v when it is applied again, want %+v", again, state)
	}
	if diff := cmp.Diff([]string{"GET " + path("secrets/drover.addon.web")}, b.cluster.Requests()); diff != "" {
		t.Errorf("requests for nothing (-want +got):\n%s", diff)
	}

	want.Resolved = b.archives.put(t, "1.1.0", with(three, map[string]string{"service.yaml": "", "config.yaml": strings.ReplaceAll(config, "hello", "hi")}))
	if state := b.mustApply(t, want); state.Revision != 2 {
		t.Errorf("state %+v after an upgrade, want revision 2", state)
	}
	if diff := cmp.Diff([]string{"ConfigMap web hi", "ServiceAccount web", "Secret drover.addon.web 2 deployed"}, b.existingObjects(t)); diff != "" {
		t.Errorf("on the cluster (-want +got):\n%s", diff)
	}

	back, err := b.Revert(t.Context(), b.cluster.Cluster, want, 0)
	if err != nil || back.Revision != 3 {
		t.Fatalf("state %+v (error %v) after going back, want revision 3", back, err)
	}
	whole := []string{"ConfigMap web hello", "Service web", "ServiceAccount web", "Secret drover.addon.web 3 deployed"}
	if diff := cmp.Diff(whole, b.existingObjects(t)); diff != "" {
		t.Errorf("on the cluster (-want +got):\n%s", diff)
	}
	history, err := b.History(t.Context(), b.cluster.Cluster, want.ID)
	if err != nil || len(history) != 2 || history[0].Package != "web-1.0.0" || history[1].Package != "web-1.1.0" || history[1].Status != tool.Superseded {
		t.Errorf("history %+v (error %v)", history, err)
	}
	b.clear(t, want)
	if err := b.Remove(t.Context(), b.cluster.Cluster, want); err != nil {
		t.Errorf("removing a missing release: got error %v", err)
	}
}

// Whichever request is a process's last, the next process completes the operation.
func TestInterruptedOperationConverges(t *testing.T) {
	changed := with(three, map[string]string{"service.yaml": "", "config.yaml": strings.ReplaceAll(config, "hello", "hi")})
	for name, how := range map[string]struct {
		cut     string
		restart bool
	}{"not sent": {}, "answer lost": {cut: workloadtest.Lost}, "answer lost, and a new process": {cut: workloadtest.Lost, restart: true}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			first, second := b.want(t, "web", "1.0.0", three), b.want(t, "web", "1.1.0", changed)
			install := func() { b.mustApply(t, first) }
			for _, job := range []struct {
				name   string
				before func()
				do     func() error
				after  []string
			}{
				{"install", func() {}, func() error {
					_, err := b.Apply(t.Context(), b.cluster.Cluster, first)
					return err
				}, []string{"ConfigMap web hello", "Service web", "ServiceAccount web", "Secret drover.addon.web 1 deployed"}},
				{"upgrade", install, func() error {
					_, err := b.Apply(t.Context(), b.cluster.Cluster, second)
					return err
				}, []string{"ConfigMap web hi", "ServiceAccount web", "Secret drover.addon.web 2 deployed"}},
				{"remove", install, func() error { return b.Remove(t.Context(), b.cluster.Cluster, first) }, nil},
				{"revert", func() {
					install()
					b.mustApply(t, second)
				}, func() error {
					_, err := b.Revert(t.Context(), b.cluster.Cluster, second, 1)
					return err
				}, []string{"ConfigMap web hello", "Service web", "ServiceAccount web", "Secret drover.addon.web 3 deployed"}},
			} {
				for n, cut := 1, true; cut; n++ {
					job.before()
					b.cluster.Cut(n, how.cut)
					err := job.do()
					if cut = b.cluster.WasCut(); cut != (err != nil) {
						t.Errorf("%s, cut at request %d: %t, error %v", job.name, n, cut, err)
					}
					b.cluster.Restart()
					if how.restart {
						b.restart(t)
					}
					if err := job.do(); err != nil {
						t.Fatalf("%s cut at request %d, then: %v", job.name, n, err)
					}
					if diff := cmp.Diff(job.after, b.existingObjects(t)); diff != "" {
						t.Fatalf("on the cluster after %s was cut at request %d (-want +got):\n%s", job.name, n, diff)
					}
					b.clear(t, first)
					if !cut && n < 5 {
						t.Errorf("%s made %d requests, the test cuts nothing", job.name, n-1)
					}
				}
			}
		})
	}
}

func TestForeignObjectsAreKept(t *testing.T) {
	for name, tt := range map[string]struct {
		labels, annotations map[string]string
		take                bool
		want                string
	}{
		"nobody's":                {want: "set takeOwnership to adopt it"},
		"nobody's, to be adopted": {take: true},
		"a Helm release's": {
			labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}, annotations: map[string]string{helmName: "other", helmNamespace: "there"},
			take: true, want: `owned by Helm release "there/other"`,
		},
		"another installation's": {
			labels: map[string]string{tool.OwnerLabel: tool.OwnerDrover}, annotations: map[string]string{tool.NameAnnotation: "other", tool.NamespaceAnnotation: "there"},
			take: true, want: `owned by installation "there/other"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			live := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: tt.labels, Annotations: tt.annotations}, Data: map[string]string{"a": "b"}}
			_, err := b.kube.CoreV1().ConfigMaps(b.namespace).Create(t.Context(), live, metav1.CreateOptions{})
			check(t, err)
			want := b.want(t, "web", "1.0.0", map[string]string{"config.yaml": config})
			want.Options.TakeOwnership = tt.take
			_, err = b.Apply(t.Context(), b.cluster.Cluster, want)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.As(err, new(*tool.TerminalError)) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want a terminal one with %q", err, tt.want)
			}
			if _, err := b.Diff(t.Context(), b.cluster.Cluster, want); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v of a diff, want %q", err, tt.want)
			}
			check(t, b.Remove(t.Context(), b.cluster.Cluster, want))
			left, err := b.kube.CoreV1().ConfigMaps(b.namespace).Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil || left.Data["greeting"] != "" {
				t.Errorf("the ConfigMap of others is %v (error %v), want it as it was", left.Data, err)
			}
		})
	}
}

func TestDiffMasksSecrets(t *testing.T) {
	b := newBench(t)
	files := with(three, map[string]string{
		"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\nstringData: {password: '${PASSWORD}'}\n",
	})
	want := b.want(t, "web", "1.0.0", files)
	want.Values = map[string]any{"substitute": map[string]any{"PASSWORD": "canary-1"}}
	changes, err := b.Diff(t.Context(), b.cluster.Cluster, want)
	if err != nil || len(changes) != 4 || changes[0].Action != tool.Create {
		t.Fatalf("changes %v (error %v), want four new objects", lines(changes), err)
	}
	if text := strings.Join(lines(changes), "\n"); strings.Contains(text, "canary") || !strings.Contains(text, "stringData.password: ***") {
		t.Errorf("the diff shows a Secret:\n%s", text)
	}
	b.mustApply(t, want)
	want.Values = map[string]any{"substitute": map[string]any{"PASSWORD": "canary-2"}}
	want.Resolved = b.archives.put(t, "1.1.0", with(files, map[string]string{"config.yaml": strings.ReplaceAll(config, "hello", "hi"), "service.yaml": ""}))
	changes, err = b.Diff(t.Context(), b.cluster.Cluster, want)
	if err != nil {
		t.Fatal(err)
	}
	told := []string{"Update Secret web", "  data.password: *** → ***", "Update ConfigMap web", `  data.greeting: "hello" → "hi"`, "Delete Service web"}
	if diff := cmp.Diff(told, lines(changes)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestDriftIsReportedAndCorrected(t *testing.T) {
	b := newBench(t)
	want := b.want(t, "web", "1.0.0", three)
	state := b.mustApply(t, want)
	want.Correct = true
	want.Ignore = []addonsv1.IgnoreRule{{Kind: "Service", Paths: []string{"/spec/ports/0/port"}}}
	patch := func(kind, body string) {
		t.Helper()
		_, err := b.cluster.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource(kind)).Namespace(b.namespace).
			Patch(t.Context(), "web", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "somebody"})
		check(t, err)
	}
	patch("configmaps", `{"data":{"greeting":"mine"}}`)
	patch("services", `{"spec":{"ports":[{"port":81}]}}`)
	changes, err := b.Diff(t.Context(), b.cluster.Cluster, want)
	if diff := cmp.Diff([]string{"Update ConfigMap web", `  data.greeting: "mine" → "hello"`}, lines(changes)); diff != "" || err != nil {
		t.Errorf("error %v, drift (-want +got):\n%s", err, diff)
	}
	if again := b.mustApply(t, want); again != state {
		t.Errorf("state %+v after the correction, want %+v", again, state)
	}
	if changes, err = b.Diff(t.Context(), b.cluster.Cluster, want); err != nil || len(changes) > 0 {
		t.Errorf("changes %v (error %v) after the correction, want none", lines(changes), err)
	}
	service, err := b.kube.CoreV1().Services(b.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || service.Spec.Ports[0].Port != 81 {
		t.Errorf("port %v (error %v), want the one that others may change", service.Spec.Ports, err)
	}
}

func TestHealthEvaluatesObjectsAndExpressions(t *testing.T) {
	b := newBench(t)
	want := b.want(t, "web", "1.0.0", with(three, map[string]string{"deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: x}}
  template: {metadata: {labels: {app: x}}, spec: {containers: [{name: main, image: example.invalid/app}]}}
`}))
	b.mustApply(t, want)
	health, err := b.Health(t.Context(), b.cluster.Cluster, want)
	if err != nil || health.Ready || !strings.Contains(health.Message, `Deployment "`+b.namespace+`/web"`) {
		t.Errorf("health %+v (error %v), want that it waits for the Deployment", health, err)
	}
	want.Health = []addonsv1.HealthCheck{{APIVersion: "apps/v1", Kind: "Deployment", Current: "self.spec.replicas == 1"}}
	if health, err = b.Health(t.Context(), b.cluster.Cluster, want); err != nil || !health.Ready {
		t.Errorf("health %+v (error %v), want ready as the expression says", health, err)
	}
}

func TestKindsNamespacesAndKeptObjects(t *testing.T) {
	b := newBench(t)
	name := b.namespace + ".example.com"
	files := map[string]string{
		"cr.yaml": "apiVersion: " + name + "/v1\nkind: Widget\nmetadata: {name: w, annotations: {addons.cluster.x-k8s.io/keep: 'true'}}\n",
		"ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: new-" + b.namespace + "}\n",
		"crd.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets." + name + ", annotations: {addons.cluster.x-k8s.io/keep: 'true'}}\n" +
			"spec: {group: " + name + ", scope: Namespaced, names: {kind: Widget, plural: widgets, singular: widget}, versions: [{name: v1, served: true, storage: true," +
			" schema: {openAPIV3Schema: {type: object}}}]}\n",
		"config.yaml": config,
	}
	want := b.want(t, "web", "1.0.0", files)
	want.ID.Namespace = "new-" + b.namespace
	if state := b.mustApply(t, want); state.Status != tool.Deployed {
		t.Fatalf("state %+v", state)
	}
	check(t, b.Remove(t.Context(), b.cluster.Cluster, want))
	gvr := corev1.SchemeGroupVersion.WithResource("configmaps")
	if _, err := b.cluster.Dynamic().Resource(gvr).Namespace(want.ID.Namespace).Get(t.Context(), "web", metav1.GetOptions{}); err == nil {
		t.Error("the ConfigMap is still there")
	}
	gvr.Group, gvr.Resource = name, "widgets"
	if _, err := b.cluster.Dynamic().Resource(gvr).Namespace(want.ID.Namespace).Get(t.Context(), "w", metav1.GetOptions{}); err != nil {
		t.Errorf("the Widget that is to be kept: %v", err)
	}
	home, err := b.kube.CoreV1().Namespaces().Get(t.Context(), want.ID.Namespace, metav1.GetOptions{})
	if err != nil || home.DeletionTimestamp != nil {
		t.Errorf("the namespace of the record is being deleted (error %v), want it kept", err)
	}
}

func TestErrorsOmitValues(t *testing.T) {
	b := newBench(t)
	want := b.want(t, "web", "1.0.0", map[string]string{
		"s.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {type: '${KIND}', ports: [{port: 1}]}\n",
	})
	want.Values = map[string]any{"substitute": map[string]any{"KIND": "canary-7f3a"}}
	state, err := b.Apply(t.Context(), b.cluster.Cluster, want)
	if !errors.As(err, new(*tool.TerminalError)) || strings.Contains(err.Error(), "canary") || state.Status != tool.Failed {
		t.Errorf("state %+v, error %v, want a terminal one that quotes no value", state, err)
	}
}
