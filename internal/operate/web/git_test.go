package web

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/gitops"
	"github.com/drover-dev/drover/internal/test/fleettest"
)

// repositories returns the answer about Git, by namespace.
func (w *world) repositories() map[string]Repository {
	w.t.Helper()
	recorded := httptest.NewRecorder()
	w.view.getGit(recorded, nil)
	var all []Repository
	if err := json.Unmarshal(recorded.Body.Bytes(), &all); err != nil {
		w.t.Fatalf("%v: %s", err, recorded.Body)
	}
	out := map[string]Repository{}
	for _, r := range all {
		out[r.Namespace] = r
	}
	return out
}

func TestGitShowsWhatDoesNotArrive(t *testing.T) {
	w := newWorld(t, fleet(fleettest.OnFire).Objects(12), nil)
	rejected := Key{drover, "team-ml", "nrt-ml-01"}
	d, err := w.view.detail(t.Context(), rejected)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Why.Git) != 1 || d.Why.Git[0].Kind != "FluxConfig" || !strings.Contains(d.Why.Git[0].Message, "newest commit to cluster nrt-ml-01") {
		t.Errorf("links about Git %+v", d.Why.Git)
	}
	if d.Row.GitRevision != "main@sha1:9be1d70c55aa3f26e8c4b7d2910f6e3a8b7c6d5e" {
		t.Errorf("revision %q, want the one that Flux has applied", d.Row.GitRevision)
	}
	if got := w.repositories()["team-ml"].Clusters; len(got) != 1 || got[0].Progress != gitops.Rejected || got[0].ID != rejected.String() || !strings.Contains(got[0].Message, "1.99") {
		t.Errorf("clusters %+v", got)
	}
	web := w.repositories()["team-ci"]
	if len(web.Changes) != 1 || web.Changes[0].Progress != gitops.Pending || web.Changes[0].Cluster != "iad-ci-02" || web.URL != "ssh://git@git.example.com/team-ci/fleet.git" {
		t.Errorf("got %+v", web)
	}
	if ready := w.rows()["drover/team-ci/iad-ci-02"]; ready.Health != Ready {
		t.Errorf("a commit that waits makes a ready cluster %s", ready.Health)
	}
}

func TestChangesOfGitReachThePage(t *testing.T) {
	w := newWorld(t, fleet(fleettest.Healthy).Objects(1), nil)
	p, _ := mustJoin(t, w.view.hub, "")
	config := &anywherev1.FluxConfig{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "team-web", Name: "fleet"}, config); err != nil {
		t.Fatal(err)
	}
	apimeta.SetStatusCondition(&config.Status.Conditions, metav1.Condition{Type: anywherev1.RepositoryFetched, Status: metav1.ConditionFalse, Reason: "FetchFailed", Message: "connection refused"})
	if err := w.Update(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	got := ""
	w.await("the page receives the change", func() bool {
		got += told(p)
		return strings.Contains(got, `"git"`) && strings.Contains(got, "ams-web-01")
	})
	if state := w.repositories()["team-web"].State; state != "FetchFailed" {
		t.Errorf("state %s", state)
	}
}

func TestCreatorSeesOnlyItsRepository(t *testing.T) {
	w := newWorld(t, fleet(fleettest.OnFire).Objects(12), onlyWeb)
	if got := w.repositories(); len(got) != 1 || got["team-web"].Name != "fleet" {
		t.Errorf("the creator sees %+v", got)
	}
}
