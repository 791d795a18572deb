// Package audit determines who created, changed and deleted Clusters. It is pure; controllers write
// the AuditRecords.
//
// A webhook must not have side effects, because the request may still be rejected. Therefore the
// mutating webhook stores each change in an annotation of the Cluster (Stamp), together with the
// change itself. The controller converts the annotation to AuditRecords (Pending), which outlive
// the Cluster, and notes the recorded generation in the status. Only a deletion, which changes no
// object, is recorded by the webhook (Deletion).
package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

// Annotation contains the changes of a Cluster that are not recorded yet. Only the webhook writes
// it.
const Annotation = "audit.drover.dev/changes"

// keep bounds the changes in the annotation, which only accumulate while no manager is running.
const keep = 100

// maxGroups and maxChanges bound a record.
const (
	maxGroups  = 20
	maxChanges = 50
)

// entry is a change that is not recorded yet.
type entry struct {
	Generation int64                    `json:"generation"`
	Action     droverv1.AuditAction     `json:"action"`
	User       string                   `json:"user"`
	Groups     []string                 `json:"groups,omitempty"`
	Time       metav1.MicroTime         `json:"time"`
	Changes    []droverv1.AuditedChange `json:"changes,omitempty"`
}

// Stamp adds the change from old to asked to the annotation; old is nil for a new Cluster. It keeps
// unrecorded changes of old, and ignores the annotation of the request.
func Stamp(old, asked *anywherev1.Cluster, who authenticationv1.UserInfo, now time.Time) error {
	var pending []entry
	e := entry{Generation: 1, Action: droverv1.Created, User: who.Username, Groups: bounded(who.Groups, maxGroups), Time: metav1.NewMicroTime(now.UTC())}
	changed := true
	if old != nil {
		pending = unrecorded(old)
		e.Changes = Changes(&old.Spec, &asked.Spec)
		changed = len(e.Changes) > 0
		e.Generation, e.Action = old.Generation+1, action(e.Changes)
		e.Changes = bounded(e.Changes, maxChanges)
	}
	if changed {
		pending = append(pending, e)
	}
	return write(asked, pending)
}

func write(c *anywherev1.Cluster, pending []entry) error {
	if len(pending) == 0 {
		delete(c.Annotations, Annotation)
		return nil
	}
	data, err := json.Marshal(pending[max(0, len(pending)-keep):])
	if err != nil {
		return fmt.Errorf("encoding the changes of Cluster %q: %w", c.Name, err)
	}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, Annotation, string(data))
	return nil
}

// unrecorded returns the changes in the annotation that are not recorded yet. It ignores an
// annotation that Stamp did not write.
func unrecorded(c *anywherev1.Cluster) []entry {
	var all []entry
	if json.Unmarshal([]byte(c.Annotations[Annotation]), &all) != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(e entry) bool { return e.Generation <= c.Status.AuditedGeneration })
}

func bounded[T any](all []T, most int) []T { return all[:min(len(all), most)] }

// Pending returns the records of unrecorded changes.
func Pending(c *anywherev1.Cluster) []*droverv1.AuditRecord {
	var out []*droverv1.AuditRecord
	for _, e := range unrecorded(c) {
		if e.Generation > c.Generation {
			continue // The request was rejected.
		}
		r := record(c, fmt.Sprintf("%s-%d", c.UID, e.Generation))
		r.Spec.Action, r.Spec.User, r.Spec.Groups = e.Action, e.User, e.Groups
		r.Spec.Time, r.Spec.Generation, r.Spec.Changes = e.Time, e.Generation, e.Changes
		out = append(out, r)
	}
	return out
}

// Deletion returns the record of a deletion.
func Deletion(c *anywherev1.Cluster, who authenticationv1.UserInfo, now time.Time) *droverv1.AuditRecord {
	r := record(c, string(c.UID)+"-deleted")
	r.Spec.Action, r.Spec.User, r.Spec.Groups = droverv1.Deleted, who.Username, bounded(who.Groups, maxGroups)
	r.Spec.Time, r.Spec.Generation = metav1.NewMicroTime(now.UTC()), c.Generation
	return r
}

func record(c *anywherev1.Cluster, name string) *droverv1.AuditRecord {
	return &droverv1.AuditRecord{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{droverv1.ClusterLabel: c.Name, droverv1.NamespaceLabel: c.Namespace}},
		Spec:       droverv1.AuditRecordSpec{Cluster: droverv1.AuditedCluster{Name: c.Name, Namespace: c.Namespace, UID: c.UID}},
	}
}
