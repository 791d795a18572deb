// Package audit determines who created, changed and deleted Clusters. It is pure; controllers write
// the AuditRecords.
//
// A webhook must not have side effects, because the request may still be rejected. Therefore the
// mutating webhook stores each change in an annotation of the Cluster (Stamp), together with the
// change itself. The controller converts the annotation to AuditRecords (Pending), which outlive
// the Cluster, and notes the recorded sequence number in the status. Only a deletion, which changes
// no object, and changes of configs, which have no status, are recorded by the webhook (Deletion,
// ObjectChange).
package audit

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

// Annotation contains the changes of a Cluster that are not recorded yet. Only the webhook writes
// it.
const Annotation = "audit.drover.dev/changes"

// keep bounds the changes in the annotation, which accumulate only while the manager is behind.
const keep = 100

// ErrBacklog means that a Cluster has too many unrecorded changes to accept another one.
var ErrBacklog = errors.New("too many unrecorded changes")

// system is the user of records that nobody caused by a request.
const system = "drover"

// maxGroups bounds the groups in a record.
const maxGroups = 20

// entry is a change that is not recorded yet.
type entry struct {
	Generation int64                    `json:"generation"`
	Sequence   int64                    `json:"sequence,omitempty"`
	Action     droverv1.AuditAction     `json:"action"`
	User       string                   `json:"user"`
	Groups     []string                 `json:"groups,omitempty"`
	Time       metav1.MicroTime         `json:"time"`
	Changes    []droverv1.AuditedChange `json:"changes,omitempty"`
	// Evicted is the number of changes that the entry stands for. Only an earlier Drover wrote such
	// entries.
	Evicted int64 `json:"evicted,omitempty"`
	// Metadata means that the change has no generation of its own.
	Metadata bool `json:"metadata,omitempty"`
}

// Stamp adds the change from old to asked to the annotation; old is nil for a new Cluster. It keeps
// unrecorded changes of old, and ignores the annotation of the request. It returns ErrBacklog
// instead of displacing unrecorded changes. Requests that change nothing to record always succeed
// and leave the annotation as it is, recorded changes included: whoever applies an unchanged spec
// must not see a difference.
func Stamp(old, asked *anywherev1.Cluster, who authenticationv1.UserInfo, now time.Time) error {
	added := entries(old, asked)
	if len(added) == 0 {
		restore(old, asked)
		return nil
	}
	pending, sequence := unrecorded(old), lastSequence(old)
	if len(pending) >= keep {
		return ErrBacklog
	}
	for _, e := range added {
		sequence++
		e.Sequence, e.User, e.Groups, e.Time = sequence, who.Username, bounded(who.Groups, maxGroups), metav1.NewMicroTime(now.UTC())
		e.Changes = summarize(e.Changes)
		pending = append(pending, e)
	}
	return write(asked, pending)
}

// entries returns what a request does to a Cluster: to its spec, and to the annotations that decide
// what happens to it.
func entries(old, asked *anywherev1.Cluster) []entry {
	generation := int64(1)
	var out []entry
	if old == nil {
		out = append(out, entry{Generation: generation, Action: droverv1.Created})
		old = &anywherev1.Cluster{}
	} else {
		generation = old.Generation
		if changes := Changes(&old.Spec, &asked.Spec); len(changes) > 0 {
			generation++
			out = append(out, entry{Generation: generation, Action: action(changes), Changes: changes})
		}
	}
	if switched := Switched(old.Annotations, asked.Annotations); len(switched) > 0 {
		out = append(out, entry{Generation: generation, Action: switchAction(old.IsPaused(), asked.IsPaused()), Changes: switched, Metadata: true})
	}
	return out
}

// lastSequence returns the sequence number of the last change of a Cluster.
func lastSequence(c *anywherev1.Cluster) int64 {
	if c == nil {
		return 0
	}
	last := c.Status.AuditedSequence
	for _, e := range unrecorded(c) {
		last = max(last, e.Sequence)
	}
	return last
}

// restore gives asked the annotation of old.
func restore(old, asked *anywherev1.Cluster) {
	if value, ok := old.Annotations[Annotation]; ok {
		metav1.SetMetaDataAnnotation(&asked.ObjectMeta, Annotation, value)
		return
	}
	delete(asked.Annotations, Annotation)
}

func write(c *anywherev1.Cluster, pending []entry) error {
	data, err := json.Marshal(pending)
	if err != nil {
		return fmt.Errorf("encoding the changes of Cluster %q: %w", c.Name, err)
	}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, Annotation, string(data))
	return nil
}

// unrecorded returns the changes in the annotation that are not recorded yet. It ignores an
// annotation that Stamp did not write, and changes that the API server did not store.
func unrecorded(c *anywherev1.Cluster) []entry {
	var all []entry
	if c == nil || json.Unmarshal([]byte(c.Annotations[Annotation]), &all) != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(e entry) bool {
		switch {
		case e.Generation > c.Generation:
			return true
		case e.Sequence == 0: // An earlier Drover wrote it.
			return e.Generation <= c.Status.AuditedGeneration
		default:
			return e.Sequence <= c.Status.AuditedSequence
		}
	})
}

func bounded[T any](all []T, most int) []T { return all[:min(len(all), most)] }

// Pending returns the records of unrecorded changes.
func Pending(c *anywherev1.Cluster) []*droverv1.AuditRecord {
	var out []*droverv1.AuditRecord
	for _, e := range unrecorded(c) {
		name := fmt.Sprintf("%s-%d", c.UID, e.Generation)
		if e.Metadata {
			name += fmt.Sprintf("-%d", e.Sequence)
		}
		r := record(c, name)
		if e.Evicted > 0 {
			r.Labels[droverv1.EvictedLabel] = strconv.FormatInt(e.Evicted, 10)
		}
		r.Spec.Action, r.Spec.User, r.Spec.Groups = e.Action, e.User, e.Groups
		r.Spec.Time, r.Spec.Generation, r.Spec.Changes = e.Time, e.Generation, e.Changes
		r.Spec.Sequence, r.Spec.Evicted = e.Sequence, e.Evicted
		out = append(out, r)
	}
	return out
}

// Deletion returns the record of a deletion. Everyone who requests it gets one, because a request
// may still be rejected after it was recorded.
func Deletion(c *anywherev1.Cluster, who authenticationv1.UserInfo, now time.Time) *droverv1.AuditRecord {
	sum := sha256.Sum256([]byte(who.Username))
	r := record(c, fmt.Sprintf("%s-deleted-%x", c.UID, sum[:4]))
	r.Spec.Action, r.Spec.User, r.Spec.Groups = droverv1.Deleted, who.Username, bounded(who.Groups, maxGroups)
	r.Spec.Time, r.Spec.Generation = metav1.NewMicroTime(now.UTC()), c.Generation
	return r
}

// ObjectChange returns the record of a change to a config that a Cluster references. The request
// identifies it, because a request may still be rejected after it was recorded.
func ObjectChange(c *anywherev1.Cluster, o droverv1.AuditedObject, changes []droverv1.AuditedChange, request admissionv1.AdmissionRequest, now time.Time) *droverv1.AuditRecord {
	r := record(c, fmt.Sprintf("%s-%s", c.UID, request.UID))
	r.Spec.Action, r.Spec.User, r.Spec.Groups = droverv1.Changed, request.UserInfo.Username, bounded(request.UserInfo.Groups, maxGroups)
	r.Spec.Time, r.Spec.Generation = metav1.NewMicroTime(now.UTC()), c.Generation
	r.Spec.Object, r.Spec.Changes = &o, summarize(changes)
	return r
}

// Eviction returns the record of older records that were deleted, of one cluster or, without a
// name, of clusters of a namespace that have no records left. It names the last of them, which
// makes it unique.
func Eviction(cluster droverv1.AuditedCluster, count int64, last metav1.Object) *droverv1.AuditRecord {
	kind := "cluster"
	if cluster.Name == "" {
		kind = "namespace"
	}
	labels := map[string]string{droverv1.NamespaceLabel: cluster.Namespace, droverv1.EvictedLabel: "true"}
	if cluster.Name != "" {
		labels[droverv1.ClusterLabel] = cluster.Name
	}
	return &droverv1.AuditRecord{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-evicted-%s", last.GetName(), kind), Labels: labels},
		Spec: droverv1.AuditRecordSpec{
			Cluster: cluster, Action: droverv1.Evicted, User: system, Evicted: count,
			Time: metav1.NewMicroTime(last.GetCreationTimestamp().UTC()), EvictedThrough: Position(last),
		},
	}
}

// Position returns where a record is in the order of eviction.
func Position(record metav1.Object) string {
	return record.GetCreationTimestamp().UTC().Format(time.RFC3339) + "/" + record.GetName()
}

func record(c *anywherev1.Cluster, name string) *droverv1.AuditRecord {
	return &droverv1.AuditRecord{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{droverv1.ClusterLabel: c.Name, droverv1.NamespaceLabel: c.Namespace}},
		Spec:       droverv1.AuditRecordSpec{Cluster: droverv1.AuditedCluster{Name: c.Name, Namespace: c.Namespace, UID: c.UID}},
	}
}
