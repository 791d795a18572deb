package helm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// diffOf returns a diff as lines of text.
func (b *bench) diffOf(t *testing.T, want tool.Want) []string {
	t.Helper()
	changes, err := b.Diff(t.Context(), b.cluster, want)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range changes {
		out = append(out, c.Action+" "+c.Object.Kind+" "+c.Object.Name)
		for line := range strings.Lines(c.Diff) {
			out = append(out, "  "+strings.TrimSpace(line))
		}
	}
	return out
}

func TestDiffPredictsAnUpgrade(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Release.Name }}'}\nstringData: {password: '{{ .Values.password }}'}\n"
	want := b.want("web", b.put(t, "1.0.0", with(four, map[string]string{"templates/secret.yaml": secret})))
	want.Values = map[string]any{"password": "old-secret"}
	if got := b.diffOf(t, want); len(got) == 0 || got[0] != "Create ServiceAccount web" {
		t.Errorf("diff before the first installation: got %v, want that all is made", got)
	}
	state := b.mustApply(t, want)
	b.observed(t, want, state)
	if got := b.diffOf(t, want); got != nil {
		t.Errorf("diff %v, want none for what is as wanted", got)
	}
	want.Values = map[string]any{"password": "new-secret", "greeting": "hi", "replicas": 3}
	want.Resolved = b.put(t, "1.1.0", with(four, map[string]string{
		"templates/secret.yaml": secret, "templates/service.yaml": "",
		"templates/more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\ndata: {a: b}\n",
	}))
	b.wire.Restart()
	diff := cmp.Diff([]string{
		"Update Secret web",
		"  data.password: *** → ***",
		"Update ConfigMap web",
		`  data.greeting: "hello" → "hi"`,
		"Create ConfigMap more",
		`  + apiVersion: "v1"`,
		`  + data.a: "b"`,
		`  + kind: "ConfigMap"`,
		`  + metadata.name: "more"`,
		`  + metadata.namespace: "` + b.namespace + `"`,
		"Update Deployment web",
		"  spec.replicas: 1 → 3",
		`  spec.template.spec.containers[0].image: "example.invalid/app:1.0.0" → "example.invalid/app:1.1.0"`,
		"Delete Service web",
	}, b.diffOf(t, want), cmp.Transformer("sorted", sortedBlocks))
	if diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	if got, err := b.Observe(b.cluster, want.ID); err != nil || got != state {
		t.Errorf("state %+v (error %v) after a diff, want %+v", got, err, state)
	}
}

// sortedBlocks joins each change to one text, since objects of a kind are in file order.
func sortedBlocks(lines []string) map[string]string {
	blocks := map[string]string{}
	head := ""
	for _, line := range lines {
		if !strings.HasPrefix(line, " ") {
			head = line
			blocks[head] = ""
			continue
		}
		blocks[head] += line + "\n"
	}
	return blocks
}

func TestDriftIsCorrectedExceptForIgnoredFields(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", four))
	state := b.mustApply(t, want)
	b.observed(t, want, state)
	want.Correct = true
	want.Ignore = []addonsv1.IgnoreRule{{Group: "apps", Kind: "Deployment", Paths: []string{"/spec/replicas"}}}
	if got := b.diffOf(t, want); got != nil {
		t.Errorf("diff %v, want none before anybody changed anything", got)
	}

	client := b.server.Clientset(t)
	patch := func(what string, do func() error) {
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	patch("changing the ConfigMap", func() error {
		_, err := client.CoreV1().ConfigMaps(b.namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"data":{"greeting":"mine"}}`),
			metav1.PatchOptions{FieldManager: "somebody"})
		return err
	})
	patch("scaling the Deployment", func() error {
		_, err := client.AppsV1().Deployments(b.namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":7}}`),
			metav1.PatchOptions{FieldManager: "autoscaler"})
		return err
	})
	patch("deleting the Service", func() error {
		return client.CoreV1().Services(b.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{})
	})
	changes, err := b.Diff(t.Context(), b.cluster, want)
	if err != nil || len(changes) != 2 || changes[0].Object.Kind != "ConfigMap" || changes[1].Action != tool.Create {
		t.Fatalf("changes %+v (error %v), want those of the ConfigMap and the Service", changes, err)
	}
	if again := b.mustApply(t, want); again != state {
		t.Errorf("state %+v after a correction, want %+v: it is no new revision", again, state)
	}
	if got := b.diffOf(t, want); got != nil {
		t.Errorf("diff %v after a correction, want none", got)
	}
	d, err := client.AppsV1().Deployments(b.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || *d.Spec.Replicas != 7 {
		t.Errorf("replicas %v (error %v), want the autoscaler's 7", *d.Spec.Replicas, err)
	}
	want.Values = map[string]any{"greeting": "hi"}
	b.mustApply(t, want)
	d, err = client.AppsV1().Deployments(b.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || *d.Spec.Replicas != 7 {
		t.Errorf("replicas %v (error %v) after an upgrade, want the autoscaler's 7", *d.Spec.Replicas, err)
	}
}

func TestHealthWaitsForWorkloads(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", four))
	health := func() tool.Health {
		t.Helper()
		h, err := b.Health(t.Context(), b.cluster, want)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if got := health(); got.Ready || got.Message != "release not found" {
		t.Errorf("health %+v before the installation", got)
	}
	b.observed(t, want, b.mustApply(t, want))
	if got := health(); got.Ready || got.Failed || !strings.Contains(got.Message, `Deployment "`+b.namespace+`/web"`) {
		t.Errorf("health %+v, want that it waits for the Deployment", got)
	}
	b.ready(t, "web")
	if got := health(); !got.Ready || got.Message != "" {
		t.Errorf("health %+v, want ready", got)
	}
	check := addonsv1.HealthCheck{APIVersion: "v1", Kind: "ConfigMap", Current: `self.data.greeting == "hi"`, Failed: `self.data.greeting.startsWith("he")`}
	want.Health = []addonsv1.HealthCheck{check}
	if got := health(); got.Ready || !got.Failed {
		t.Errorf("health %+v, want what the expressions say", got)
	}
	want.Health[0].Current = "self.data.greeting =="
	if _, err := b.Health(t.Context(), b.cluster, want); !isTerminal(err) {
		t.Errorf("error %v, want a terminal one for an expression that can't be read", err)
	}
	want.Health = nil
	if err := b.server.Clientset(t).CoreV1().Services(b.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := health(); got.Ready || !strings.Contains(got.Message, "not found") {
		t.Errorf("health %+v, want the Service to be missing", got)
	}
}

// ready simulates the controllers of a Deployment.
func (b *bench) ready(t *testing.T, name string) {
	t.Helper()
	deployments := b.server.Clientset(t).AppsV1().Deployments(b.namespace)
	d, err := deployments.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas, ReadyReplicas: *d.Spec.Replicas,
		AvailableReplicas: *d.Spec.Replicas,
		Conditions:        []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: "True"}, {Type: appsv1.DeploymentProgressing, Status: "True", Reason: "NewReplicaSetAvailable"}},
	}
	if _, err := deployments.UpdateStatus(t.Context(), d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
