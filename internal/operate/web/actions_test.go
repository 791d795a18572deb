package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/test/fleettest"
)

// act sends a request about an action, and decodes the answer.
func (w *world) act(handler http.HandlerFunc, namespace, name, body string) (int, map[string]any) {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.SetPathValue("kind", drover)
	r.SetPathValue("namespace", namespace)
	r.SetPathValue("name", name)
	recorded := httptest.NewRecorder()
	handler(recorded, r)
	answer := map[string]any{}
	if err := json.Unmarshal(recorded.Body.Bytes(), &answer); err != nil {
		w.t.Fatalf("%v: %s", err, recorded.Body)
	}
	return recorded.Code, answer
}

func (w *world) live(namespace, name string) *anywherev1.Cluster {
	w.t.Helper()
	c := &anywherev1.Cluster{}
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, c); err != nil {
		w.t.Fatal(err)
	}
	return c
}

func TestScaleFollowsItsPlan(t *testing.T) {
	w := newWorld(t, fleet(fleettest.Healthy).Objects(2), nil)
	const namespace, name = "team-batch", "fra-batch-01"
	code, plan := w.act(w.view.planAction, namespace, name, `{"action":"scale","group":"md-0","count":2}`)
	if code != http.StatusOK || !strings.Contains(fmt.Sprint(plan["changes"]), "from:4") || !strings.Contains(fmt.Sprint(plan["notes"]), "deletes 2 machines") {
		t.Fatalf("status %d, plan %v", code, plan)
	}
	if !strings.HasPrefix(plan["command"].(string), "drover kubectl patch clusters.anywhere.eks.amazonaws.com fra-batch-01 -n team-batch --type json -p '[") {
		t.Errorf("command %v", plan["command"])
	}
	if got := *w.live(namespace, name).Spec.WorkerNodeGroupConfigurations[0].Count; got != 4 {
		t.Fatalf("the plan has changed the count to %d", got)
	}
	code, answer := w.act(w.view.doAction, namespace, name, fmt.Sprintf(`{"action":"scale","group":"md-0","count":2,"state":%q}`, plan["state"]))
	if got := *w.live(namespace, name).Spec.WorkerNodeGroupConfigurations[0].Count; code != http.StatusOK || got != 2 {
		t.Errorf("status %d, %v; the count is %d, want 2", code, answer, got)
	}
}

func TestControlPlaneScalesToOddCounts(t *testing.T) {
	w := newWorld(t, fleet(fleettest.Healthy).Objects(2), nil)
	const namespace, name = "team-batch", "fra-batch-01"
	for count, want := range map[int]string{2: "can't have 2 machines", 0: "can't have 0 machines"} {
		code, answer := w.act(w.view.planAction, namespace, name, fmt.Sprintf(`{"action":"scale","group":"control plane","count":%d}`, count))
		if code != http.StatusUnprocessableEntity || !strings.Contains(fmt.Sprint(answer), want) {
			t.Errorf("%d machines: status %d, %v", count, code, answer)
		}
	}
	_, plan := w.act(w.view.planAction, namespace, name, `{"action":"scale","group":"control plane","count":1}`)
	if notes := fmt.Sprint(plan["notes"]); !strings.Contains(notes, "deletes 2 machines") || !strings.Contains(notes, "does not survive") {
		t.Errorf("notes %s", notes)
	}
	code, answer := w.act(w.view.doAction, namespace, name, fmt.Sprintf(`{"action":"scale","group":"control plane","count":5,"state":%q}`, plan["state"]))
	if got := w.live(namespace, name).Spec.ControlPlaneConfiguration.Count; code != http.StatusOK || got != 5 {
		t.Errorf("status %d, %v; the count is %d, want 5", code, answer, got)
	}
	s := &anywherev1.ClusterSpec{}
	s.ControlPlaneConfiguration.UpgradeRolloutStrategy = &anywherev1.ControlPlaneUpgradeRolloutStrategy{Type: anywherev1.InPlaceStrategyType}
	if got := fmt.Sprint(describedGroups(s)[0].Counts); got != "[3 5]" {
		t.Errorf("a control plane that is upgraded in place can have %s machines", got)
	}
}

func TestPauseAndResume(t *testing.T) {
	w := newWorld(t, fleet(fleettest.Healthy).Objects(2), nil)
	for _, want := range []bool{true, false} {
		action := map[bool]string{true: actPause, false: actResume}[want]
		_, plan := w.act(w.view.planAction, "team-batch", "fra-batch-01", fmt.Sprintf(`{"action":%q}`, action))
		code, answer := w.act(w.view.doAction, "team-batch", "fra-batch-01", fmt.Sprintf(`{"action":%q,"state":%q}`, action, plan["state"]))
		if got := w.live("team-batch", "fra-batch-01").IsPaused(); code != http.StatusOK || got != want {
			t.Fatalf("%s: status %d, %v; paused %v", action, code, answer, got)
		}
		w.await("the page shows it", func() bool {
			return (w.rows()["drover/team-batch/fra-batch-01"].Health == Paused) == want
		})
	}
}

func TestActionsRejectWhatNobodyPlanned(t *testing.T) {
	w := newWorld(t, fleet(fleettest.Healthy).Objects(2), nil)
	stale := `"state":"team-batch/fra-batch-01.99"`
	for body, want := range map[string]string{
		`{"action":"scale","group":"md-0","count":2}`:                "which plan",
		`{"action":"scale","group":"md-0","count":2,` + stale + `}`:  "",
		`{"action":"scale","group":"md-0","count":-1,` + stale + `}`: "0 or more",
		`{"action":"scale","group":"nope","count":1,` + stale + `}`:  "no machine group",
		`{"action":"explode"}`:                                "unknown action",
		`{"action":"pause","surprise":1}`:                     "not a known action",
		`{"action":"delete","confirm":"other",` + stale + `}`: "not \"fra-batch-01\"",
		`{"action":"upgrade"}`:                                "choose a version",
		`not JSON`:                                            "not a known action",
	} {
		code, answer := w.act(w.view.doAction, "team-batch", "fra-batch-01", body)
		if message, _ := answer["error"].(string); code < 400 || !strings.Contains(message, want) {
			t.Errorf("%s: status %d, %v; want an error with %q", body, code, answer, want)
		}
	}
	if got := *w.live("team-batch", "fra-batch-01").Spec.WorkerNodeGroupConfigurations[0].Count; got != 4 {
		t.Errorf("the count is %d, want 4", got)
	}
}

func TestDeleteRequiresTheName(t *testing.T) {
	w := newWorld(t, fleet(fleettest.Healthy).Objects(2), nil)
	_, plan := w.act(w.view.planAction, "team-batch", "fra-batch-01", `{"action":"delete"}`)
	if !strings.Contains(fmt.Sprint(plan["notes"]), "Deletes 7 machines") {
		t.Errorf("plan %v", plan)
	}
	code, answer := w.act(w.view.doAction, "team-batch", "fra-batch-01", fmt.Sprintf(`{"action":"delete","confirm":"fra-batch-01","state":%q}`, plan["state"]))
	err := w.Get(t.Context(), client.ObjectKey{Namespace: "team-batch", Name: "fra-batch-01"}, &anywherev1.Cluster{})
	if code != http.StatusOK || client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("status %d, %v; reading the cluster: %v", code, answer, err)
	}
}

func TestSpecsInGitAreChangedThere(t *testing.T) {
	w := newWorld(t, fleet(fleettest.Healthy).Objects(1), nil)
	code, answer := w.act(w.view.planAction, "team-web", "ams-web-01", `{"action":"scale","group":"md-0","count":9}`)
	if code != http.StatusUnprocessableEntity || !strings.Contains(fmt.Sprint(answer["error"]), "in Git") {
		t.Errorf("status %d, %v", code, answer)
	}
	if code, answer := w.act(w.view.planAction, "team-web", "ams-web-01", `{"action":"pause"}`); code != http.StatusOK {
		t.Errorf("pausing: status %d, %v", code, answer)
	}
}

func TestNewerOffersTheNextMinor(t *testing.T) {
	releases := []string{"v1.37.0", "v1.36.3", "v1.36.1", "v1.35.4"}
	for current, want := range map[string]string{"1.35": "[1.36]", "1.36": "[1.37]", "1.37": "[]", "latest": "[]"} {
		if got := fmt.Sprint(newer(current, releases)); got != want {
			t.Errorf("%s: %s, want %s", current, got, want)
		}
	}
}

func TestUpgradesSayWhatHappensToMachines(t *testing.T) {
	replaced, inPlace := anywherev1.RollingUpdateStrategyType, anywherev1.InPlaceStrategyType
	group := func(name string, strategy anywherev1.UpgradeRolloutStrategyType) anywherev1.WorkerNodeGroupConfiguration {
		return anywherev1.WorkerNodeGroupConfiguration{Name: name, UpgradeRolloutStrategy: &anywherev1.WorkerNodesUpgradeRolloutStrategy{Type: strategy}}
	}
	pinned := group("old", replaced)
	pinned.KubernetesVersion = ptr.To("1.35")
	for name, tt := range map[string]struct {
		controlPlane anywherev1.UpgradeRolloutStrategyType
		workers      []anywherev1.WorkerNodeGroupConfiguration
		want         string
	}{
		"by default":  {"", []anywherev1.WorkerNodeGroupConfiguration{{Name: "a"}}, "Machines are replaced one after another: the control plane, worker group a."},
		"in place":    {inPlace, []anywherev1.WorkerNodeGroupConfiguration{group("a", inPlace)}, "Machines are upgraded in place, one at a time: the control plane, worker group a."},
		"both":        {replaced, []anywherev1.WorkerNodeGroupConfiguration{group("a", inPlace)}, "Machines are replaced one after another: the control plane. Machines are upgraded in place, one at a time: worker group a."},
		"own version": {inPlace, []anywherev1.WorkerNodeGroupConfiguration{pinned}, "Machines are upgraded in place, one at a time: the control plane."},
	} {
		t.Run(name, func(t *testing.T) {
			s := &anywherev1.ClusterSpec{WorkerNodeGroupConfigurations: tt.workers}
			s.ControlPlaneConfiguration.UpgradeRolloutStrategy = &anywherev1.ControlPlaneUpgradeRolloutStrategy{Type: tt.controlPlane}
			if got := strings.Join(upgradeNotes(s)[1:], " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCommandsDoTheSame(t *testing.T) {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	o.SetKind("MachineDeployment")
	o.SetNamespace("default")
	o.SetName("one-md-0")
	patch := &change{object: o, patch: []operation{{"add", "/spec/replicas", 0}}}
	if got, want := patch.command(), `drover kubectl patch machinedeployments.cluster.x-k8s.io one-md-0 -n default --type json -p '[{"op":"add","path":"/spec/replicas","value":0}]'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	remove := &change{object: o, deletes: true}
	if got, want := remove.command(), "drover kubectl delete machinedeployments.cluster.x-k8s.io one-md-0 -n default"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
