package web

import (
	"net/http"

	"github.com/drover-dev/drover/internal/operate/inspect"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// Release is an add-on on a cluster.
type Release struct {
	inspect.OnCluster

	// AddOn is the HelmChartProxy, and ClusterNamespace the namespace of the cluster.
	AddOn            string `json:"addOn,omitempty"`
	ClusterNamespace string `json:"clusterNamespace"`
	Chart            string `json:"chart"`
	Drifted          bool   `json:"drifted,omitempty"`
	Failure          string `json:"failure,omitempty"`
}

// AddOns are the add-ons of the fleet with their releases.
type AddOns struct {
	AddOns   []inspect.AddOn `json:"addOns"`
	Releases []Release       `json:"releases"`
}

func releaseOf(r *addonsv1.HelmReleaseProxy) Release {
	out := Release{
		OnCluster: inspect.ReleaseStatus(r), AddOn: r.Labels[addonsv1.HelmChartProxyLabel], Chart: r.Spec.ChartName,
		ClusterNamespace: r.Namespace,
	}
	for _, c := range r.Status.Conditions {
		out.Drifted = out.Drifted || c.Type == addonsv1.ReleaseInSync && c.Status == "False"
	}
	if r.Status.Attempt != nil {
		out.Failure = r.Status.Attempt.Message
	}
	return out
}

// getAddOns answers from the caches.
func (v *View) getAddOns(w http.ResponseWriter, _ *http.Request) {
	out := AddOns{AddOns: []inspect.AddOn{}, Releases: []Release{}}
	for _, r := range list[*addonsv1.HelmReleaseProxy](v.stores[kindReleases]) {
		out.Releases = append(out.Releases, releaseOf(r))
	}
	for _, a := range list[*addonsv1.HelmChartProxy](v.stores[kindAddOns]) {
		status := inspect.SummarizeAddOn(a, v.releasesOf(a))
		status.Clusters = nil // they are in the list of releases
		out.AddOns = append(out.AddOns, status)
	}
	writeJSON(w, http.StatusOK, out)
}

// releasesOf returns the releases of an add-on.
func (v *View) releasesOf(a *addonsv1.HelmChartProxy) []addonsv1.HelmReleaseProxy {
	var out []addonsv1.HelmReleaseProxy
	for _, r := range list[*addonsv1.HelmReleaseProxy](v.stores[kindReleases]) {
		if r.Labels[addonsv1.HelmChartProxyLabel] == a.Name && r.Namespace == a.Namespace {
			out = append(out, *r)
		}
	}
	return out
}
