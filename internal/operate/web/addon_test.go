package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/test/fleettest"
)

func (w *world) addOn(name string) AddOnDetail {
	w.t.Helper()
	recorded := w.get(w.view.getAddOn, Key{Namespace: anywherev1.SystemNamespace, Name: name})
	var out AddOnDetail
	if err := json.Unmarshal(recorded.Body.Bytes(), &out); err != nil || recorded.Code != http.StatusOK {
		w.t.Fatalf("status %d, %v: %s", recorded.Code, err, recorded.Body)
	}
	return out
}

// liveAddOn reads an add-on from the plane.
func (w *world) liveAddOn(name string) *addonsv1.HelmChartProxy {
	w.t.Helper()
	out := &addonsv1.HelmChartProxy{}
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name}, out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

func TestAddOnRollsBackAsPlanned(t *testing.T) {
	w := newWorld(t, fleet(fleettest.Healthy).Objects(2), nil)
	w.grant()
	d := w.addOn("ingress")
	if len(d.Revisions) != 2 || !d.Revisions[0].Current || d.Revisions[1].Version != "4.11.3" || d.Actions[0].Unusable != "" {
		t.Fatalf("got %+v", d)
	}
	code, plan := w.act(w.view.planAddOn, anywherev1.SystemNamespace, "ingress", `{"action":"rollback","revision":1}`)
	if code != http.StatusOK || !strings.Contains(fmt.Sprint(plan["changes"]), "from:4.12.0") || plan["command"] != "drover addon rollback ingress --to 1 -n eksa-system" {
		t.Fatalf("status %d, plan %v", code, plan)
	}
	if got := w.liveAddOn("ingress").Spec.Version; got != "4.12.0" {
		t.Fatalf("the plan has changed the version to %s", got)
	}
	code, answer := w.act(w.view.doAddOn, anywherev1.SystemNamespace, "ingress", fmt.Sprintf(`{"action":"rollback","revision":1,"state":%q}`, plan["state"]))
	if got := w.liveAddOn("ingress").Spec.Version; code != http.StatusOK || got != "4.11.3" {
		t.Errorf("status %d, %v; version %s", code, answer, got)
	}
	for body, want := range map[string]string{
		`{"action":"rollback","revision":9,"state":"x.1"}`: "revision not found",
		`{"action":"rollback","state":"x.1"}`:              "choose a revision",
	} {
		if code, answer := w.act(w.view.doAddOn, anywherev1.SystemNamespace, "ingress", body); code < 400 || !strings.Contains(fmt.Sprint(answer["error"]), want) {
			t.Errorf("%s: status %d, %v", body, code, answer)
		}
	}
}

func TestPausedRolloutIsResumed(t *testing.T) {
	w := newWorld(t, fleet(fleettest.Healthy).Objects(2), nil)
	if got := w.addOn("ingress").Actions; len(got) != 2 || got[1].Name != actContinue || got[1].Unusable == "" {
		t.Errorf("a user without privileges gets the actions %+v", got)
	}
	if got := w.addOn("cilium").Actions; len(got) != 1 {
		t.Errorf("an add-on without a paused rollout has the actions %+v", got)
	}
	_, plan := w.act(w.view.planAddOn, anywherev1.SystemNamespace, "ingress", `{"action":"continue"}`)
	if plan["command"] != "drover addon resume ingress -n eksa-system" {
		t.Errorf("plan %v", plan)
	}
	code, answer := w.act(w.view.doAddOn, anywherev1.SystemNamespace, "ingress", fmt.Sprintf(`{"action":"continue","state":%q}`, plan["state"]))
	if got := w.liveAddOn("ingress").Annotations[addonsv1.ResumeRolloutAnnotation]; code != http.StatusOK || got == "" {
		t.Errorf("status %d, %v; annotation %q", code, answer, got)
	}
	if code, answer := w.act(w.view.planAddOn, anywherev1.SystemNamespace, "cilium", `{"action":"continue"}`); code != http.StatusUnprocessableEntity {
		t.Errorf("a rollout that is not paused: status %d, %v", code, answer)
	}
}

func TestHistoryNobodyMayReadIsExplained(t *testing.T) {
	w := newWorld(t, fleet(fleettest.Healthy).Objects(1), nil)
	w.allow(func(kind, _ string) error {
		if strings.Contains(kind, "ControllerRevision") {
			return forbidden("controllerrevisions")
		}
		return nil
	})
	if d := w.addOn("ingress"); !strings.Contains(d.Unread, "ControllerRevisions") || d.AddOn.Name != "ingress" {
		t.Errorf("got %+v", d)
	}
	w.allow(func(string, string) error { return errors.New("connection refused") })
	recorded := w.get(w.view.getAddOn, Key{Namespace: anywherev1.SystemNamespace, Name: "ingress"})
	if recorded.Code != http.StatusBadGateway {
		t.Errorf("an unreachable plane: status %d", recorded.Code)
	}
	if recorded = w.get(w.view.getAddOn, Key{Namespace: "other", Name: "ingress"}); recorded.Code != http.StatusNotFound {
		t.Errorf("an add-on that doesn't exist: status %d", recorded.Code)
	}
}
