package web

import (
	"cmp"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

// maxRecords bounds the audit records in a response.
const maxRecords = 200

// AuditItem is a change that somebody made.
type AuditItem struct {
	Time   metav1.MicroTime `json:"time"`
	Action string           `json:"action"`
	User   string           `json:"user"`
	// Object is the changed config, if not the Cluster itself was changed.
	Object  string                   `json:"object,omitempty"`
	Changes []droverv1.AuditedChange `json:"changes,omitempty"`
	// Evicted is how many older records were deleted.
	Evicted int64 `json:"evicted,omitempty"`
}

// getAudit reads who changed a cluster from the plane, newest first: records are not watched.
// Clusters that exist in Cluster API only have none.
func (v *View) getAudit(w http.ResponseWriter, r *http.Request) {
	key, out := keyOf(r), []AuditItem{}
	if key.Kind != drover {
		writeJSON(w, http.StatusOK, out)
		return
	}
	all := &droverv1.AuditRecordList{}
	err := v.plane.Client.List(r.Context(), all, client.MatchingLabels{droverv1.ClusterLabel: key.Name, droverv1.NamespaceLabel: key.Namespace})
	switch {
	case apierrors.IsForbidden(err):
		fail(w, http.StatusForbidden, "you may not list audit records", "Ask for the role drover-viewer or drover-cluster-admin in all namespaces.")
		return
	case err != nil && !meta.IsNoMatchError(err):
		report(w, err)
		return
	}
	slices.SortFunc(all.Items, func(a, b droverv1.AuditRecord) int {
		return cmp.Or(b.Spec.Time.Compare(a.Spec.Time.Time), cmp.Compare(b.Spec.Generation, a.Spec.Generation), cmp.Compare(a.Name, b.Name))
	})
	for i := range all.Items[:min(len(all.Items), maxRecords)] {
		s := &all.Items[i].Spec
		item := AuditItem{Time: s.Time, Action: string(s.Action), User: s.User, Changes: s.Changes, Evicted: s.Evicted}
		if s.Object != nil {
			item.Object = s.Object.Kind + "/" + s.Object.Name
		}
		out = append(out, item)
	}
	writeJSON(w, http.StatusOK, out)
}
