package addons_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/managertest"
)

// picky is a chart whose second version can't be rendered for cluster b.
func picky(t *testing.T) *artifacttest.Repository {
	t.Helper()
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{TLS: true})
	repository.Publish("greeter", "1.0.0", greeter(t, "1.0.0"))
	repository.Publish("greeter", "2.0.0", artifacttest.Chart(t, "greeter", "2.0.0", map[string]string{
		"templates/config.yaml": `{{ if eq .Values.name "b" }}{{ fail "not on this one" }}{{ end }}apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {text: {{ .Values.name | quote }}, version: {{ .Chart.Version | quote }}}
`,
	}))
	return repository
}

func (w *world) trust(repository *artifacttest.Repository) func(*spec) {
	w.Helper()
	w.secret("ca", corev1.SecretTypeOpaque, map[string][]byte{"ca.crt": repository.Access().CA})
	return func(s *spec) {
		s.ValuesTemplate = "name: {{ .Cluster.metadata.name }}\n"
		s.TLSConfig = &addonsv1.TLSConfig{CASecretRef: &corev1.SecretReference{Name: "ca"}}
	}
}

func TestFailedRolloutStopsAndRollsBack(t *testing.T) {
	w := newWorldWith(t, managertest.Checked)
	repository := picky(t)
	p := w.proxy("waves", repository.URL, w.trust(repository))
	p.Spec.Rollout = &addonsv1.Rollout{
		Waves: []addonsv1.Wave{
			{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "a"}}},
			{Size: ptr.To(intstr.FromInt32(1))},
		},
		OnFailure: "Rollback",
	}
	w.create(p)
	w.awaitReady(p, 3)
	w.until("the first version is rolled out", func() bool {
		return w.ready(p) && p.Status.Rollout != nil && p.Status.Rollout.Phase == addonsv1.RolloutComplete
	})
	w.change(p, func(s *spec) { s.Version = "2.0.0" })
	var seen bool
	w.until("the second version is taken back", func() bool {
		text := w.text("waves")
		seen = seen || text[0] == "a from 2.0.0"
		if text[2] != "hello, c from 1.0.0" {
			t.Fatalf("the last wave was reached: %v", text)
		}
		return seen && text[0] == "hello, a from 1.0.0"
	})
	if diff := cmp.Diff([]string{"hello, a from 1.0.0", "hello, b from 1.0.0", "hello, c from 1.0.0"}, w.text("waves")); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestDriftIsCorrected(t *testing.T) {
	w := newWorldWith(t, managertest.Checked)
	repository := picky(t)
	p := w.proxy("drifting", repository.URL, w.trust(repository), func(s *spec) {
		s.Drift = &addonsv1.Drift{Mode: addonsv1.DriftCorrect, Ignore: []addonsv1.IgnoreRule{{Kind: "ConfigMap", Paths: []string{"/data/version"}}}}
	})
	w.create(p)
	w.awaitReady(p, 3)
	maps := workloads.All()[1].Clientset(t).CoreV1().ConfigMaps(w.target)
	w.until("drift is looked for", func() bool {
		for _, r := range w.releases() {
			if r.Spec.ClusterRef.Name == "b" {
				for _, c := range r.Status.Conditions {
					if c.Type == addonsv1.ReleaseInSync && c.Status == metav1.ConditionTrue {
						return true
					}
				}
			}
		}
		return false
	})
	patch := []byte(`{"data":{"text":"somebody was here","version":"mine"}}`)
	if _, err := maps.Patch(t.Context(), "drifting", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the change is undone, but for what is ignored", func() bool { return w.text("drifting")[1] == "hello, b from mine" })
	if diff := cmp.Diff([]string{"1 deployed"}, w.records(workloads.All()[1], "drifting")); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if err := maps.Delete(t.Context(), "drifting", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("what was deleted is back", func() bool { return w.text("drifting")[1] == "hello, b from 1.0.0" })
}

func TestAddonWaitsForDependencies(t *testing.T) {
	w := newWorld(t)
	repository := picky(t)
	trust := w.trust(repository)
	second := w.proxy("second", repository.URL, trust, func(s *spec) { s.DependsOn = []string{"first"} })
	w.create(second)
	w.until("it waits", func() bool {
		waiting := 0
		for _, r := range w.releases() {
			for _, c := range r.Status.Conditions {
				if c.Reason == addonsv1.WaitingForDependenciesReason {
					waiting++
				}
			}
		}
		return waiting == 3
	})
	first := w.proxy("first", repository.URL, trust)
	w.create(first)
	w.awaitReady(second, 3)
	times := func(name string) []time.Time {
		var out []time.Time
		for _, s := range workloads.All() {
			m, err := s.Clientset(t).CoreV1().ConfigMaps(w.target).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, m.CreationTimestamp.Time)
		}
		return out
	}
	one, two := times("first"), times("second")
	for i := range one {
		if two[i].Before(one[i]) {
			t.Errorf("on cluster %d the second came at %s, before the first at %s", i, two[i], one[i])
		}
	}
}

func TestFailingClusterDoesNotBlockOtherClusters(t *testing.T) {
	w := newWorldWith(t, managertest.Checked)
	repository := picky(t)
	p := w.proxy("picky", repository.URL, w.trust(repository), func(s *spec) { s.Version = "2.0.0" })
	w.create(p)
	w.until("it is on the good ones", func() bool {
		text := w.text("picky")
		return text[0] == "a from 2.0.0" && text[1] == "" && text[2] == "c from 2.0.0"
	})
	w.until("the failure is reported", func() bool {
		for _, r := range w.releases() {
			if r.Spec.ClusterRef.Name == "b" && r.Status.Attempt != nil && r.Status.Attempt.Terminal {
				return true
			}
		}
		return false
	})
}
