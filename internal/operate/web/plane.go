package web

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlaneInfo describes the management plane.
type PlaneInfo struct {
	Host       string   `json:"host"`
	Version    string   `json:"version,omitempty"`
	Kubernetes []string `json:"kubernetes,omitempty"`
	Bundles    []string `json:"bundles,omitempty"`
	// Hidden are the kinds that the user may not read anywhere.
	Hidden []string `json:"hidden,omitempty"`
	// Namespaces are those that the user may read clusters from, or none for all.
	Namespaces []string    `json:"namespaces,omitempty"`
	Now        metav1.Time `json:"now"`
}

func (v *View) getPlane(w http.ResponseWriter, r *http.Request) {
	info := PlaneInfo{Host: v.plane.Host, Now: metav1.NewTime(v.now())}
	if runs, err := v.offered(r.Context()); err == nil {
		info.Version, info.Kubernetes, info.Bundles = runs.Version, runs.Kubernetes, runs.Bundles
	}
	for _, k := range kinds() {
		s := v.stores[k.name]
		if s.hidden() {
			info.Hidden = append(info.Hidden, k.name)
		}
		if k.name == kindClusters {
			for _, namespace := range s.namespaces() {
				if namespace != "" {
					info.Namespaces = append(info.Namespaces, namespace)
				}
			}
		}
	}
	writeJSON(w, http.StatusOK, info)
}

// getServer asks the API server about itself, when somebody opens the page.
func (v *View) getServer(w http.ResponseWriter, r *http.Request) {
	server, err := v.plane.Server(r.Context())
	respond(w, server, err)
}
