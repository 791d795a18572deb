package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// Names of actions on an add-on.
const (
	actRollBack = "rollback"
	actContinue = "continue"
)

// AddOnDetail is an add-on with its history.
type AddOnDetail struct {
	AddOn     inspect.AddOn      `json:"addOn"`
	Revisions []inspect.Revision `json:"revisions"`
	// Unread is why the revisions can't be read, or empty.
	Unread  string   `json:"unread,omitempty"`
	Actions []Action `json:"actions"`
}

// addOn returns the HelmChartProxy that a request is about.
func (v *View) addOn(r *http.Request) (*addonsv1.HelmChartProxy, error) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	for _, a := range list[*addonsv1.HelmChartProxy](v.stores[kindAddOns]) {
		if a.Namespace == namespace && a.Name == name {
			return a, nil
		}
	}
	return nil, &inspect.NotFoundError{Kind: "add-on", Namespace: namespace, Name: name}
}

// getAddOn reads the history from the plane: revisions are not watched.
func (v *View) getAddOn(w http.ResponseWriter, r *http.Request) {
	a, err := v.addOn(r)
	if err != nil {
		report(w, err)
		return
	}
	out := AddOnDetail{AddOn: inspect.SummarizeAddOn(a, v.releasesOf(a)), Actions: v.addOnActions(r.Context(), a)}
	out.Revisions, err = v.plane.AddOnRevisions(r.Context(), a)
	if apierrors.IsForbidden(err) {
		out.Revisions, out.Unread, err = []inspect.Revision{}, "You may not list ControllerRevisions in namespace "+a.Namespace+", which keep earlier specs.", nil
	}
	respond(w, out, err)
}

// addOnActions returns what can be done with an add-on.
func (v *View) addOnActions(ctx context.Context, a *addonsv1.HelmChartProxy) []Action {
	unusable := ""
	if !v.may(ctx, "patch", addonsv1.GroupVersion.Group, "helmchartproxies", Key{Namespace: a.Namespace, Name: a.Name}) {
		unusable = "You may not change this add-on. Ask an administrator."
	}
	out := []Action{{Name: actRollBack, Unusable: unusable}}
	if rolloutPaused(a) {
		out = append(out, Action{Name: actContinue, Unusable: unusable})
	}
	return out
}

func rolloutPaused(a *addonsv1.HelmChartProxy) bool {
	return a.Status.Rollout != nil && a.Status.Rollout.Phase == addonsv1.RolloutPaused
}

// planAddOn and doAddOn are about an add-on.
func (v *View) planAddOn(w http.ResponseWriter, r *http.Request) { v.answerPlan(w, r, v.addOnChange) }
func (v *View) doAddOn(w http.ResponseWriter, r *http.Request)   { v.answerDo(w, r, v.addOnChange) }

func (v *View) addOnChange(r *http.Request, asked request) (*change, error) {
	a, err := v.addOn(r)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(addonsv1.GroupVersion.String())
	u.SetKind("HelmChartProxy")
	u.SetNamespace(a.Namespace)
	u.SetName(a.Name)
	switch {
	case asked.Action == actRollBack && asked.Revision > 0:
		restored, err := v.plane.AddOnAt(r.Context(), a, asked.Revision)
		if err != nil {
			return nil, err
		}
		return &change{
			object: u, patch: []operation{{"replace", "/spec", restored.Spec}},
			notes: []string{fmt.Sprintf("Changes the add-on on %d clusters, in the waves of its rollout if it has any. The cluster selector stays.", len(a.Status.MatchingClusters))},
			same:  fmt.Sprintf("drover addon rollback %s --to %d -n %s", a.Name, asked.Revision, a.Namespace),
		}, nil
	case asked.Action == actContinue && rolloutPaused(a):
		return &change{
			object: u, patch: annotating(a, addonsv1.ResumeRolloutAnnotation, strconv.FormatInt(v.now().UnixNano(), 36)),
			notes: []string{"Clusters that have already failed do not pause the rollout again."},
			same:  fmt.Sprintf("drover addon resume %s -n %s", a.Name, a.Namespace),
		}, nil
	case asked.Action == actContinue:
		return nil, &usageError{"the rollout is not paused", "It continues by itself."}
	}
	return nil, &usageError{"choose a revision to roll back to", "Reload the page."}
}
