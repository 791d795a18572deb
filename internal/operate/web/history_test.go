package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/test/fleettest"
)

// warning returns an event about a Cluster.
func warning(namespace, cluster, message string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: cluster + "." + message[:4]},
		InvolvedObject: corev1.ObjectReference{Kind: "Cluster", Namespace: namespace, Name: cluster},
		Type:           corev1.EventTypeWarning, Reason: "QuotaExceeded", Message: message, LastTimestamp: metav1.NewTime(start.Add(time.Minute)),
	}
}

func TestEventsAreThoseOfTheCluster(t *testing.T) {
	w := newWorld(t, append(fleet(fleettest.Healthy).Objects(2), warning("team-web", "ams-web-01", "no room"), warning("team-batch", "fra-batch-01", "other")), nil)
	recorded := w.get(w.view.getEvents, Key{drover, "team-web", "ams-web-01"})
	var got inspect.Timeline
	if err := json.Unmarshal(recorded.Body.Bytes(), &got); err != nil || recorded.Code != http.StatusOK || len(got.Entries) < 3 {
		t.Fatalf("status %d, %v: %s", recorded.Code, err, recorded.Body)
	}
	last := got.Entries[len(got.Entries)-1]
	if last.What != "QuotaExceeded: no room" || !last.Warning || last.Object != "Cluster/ams-web-01" {
		t.Errorf("the last entry is %+v", last)
	}
	if first := got.Entries[0]; first.What != "created" || strings.Contains(recorded.Body.String(), "other") {
		t.Errorf("the first entry is %+v of %s", first, recorded.Body)
	}
}

// record returns an audit record.
func record(name string, cluster droverv1.AuditedCluster, action droverv1.AuditAction, ago time.Duration) *droverv1.AuditRecord {
	return &droverv1.AuditRecord{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{droverv1.ClusterLabel: cluster.Name, droverv1.NamespaceLabel: cluster.Namespace}},
		Spec: droverv1.AuditRecordSpec{
			Cluster: cluster, Action: action, User: "alice", Time: metav1.NewMicroTime(start.Add(-ago)),
			Object: &droverv1.AuditedObject{Kind: "PacketMachineConfig", Name: name}, Changes: []droverv1.AuditedChange{{Path: "spec.count", From: "3", To: "4"}},
		},
	}
}

func TestAuditOfAClusterIsNewestFirst(t *testing.T) {
	mine, other := droverv1.AuditedCluster{Namespace: "team-web", Name: "ams-web-01"}, droverv1.AuditedCluster{Namespace: "team-batch", Name: "fra-batch-01"}
	objects := append(fleet(fleettest.Healthy).Objects(2), record("a", mine, droverv1.Created, time.Hour), record("b", mine, droverv1.Scaled, time.Minute), record("c", other, droverv1.Deleted, 0))
	for i := range maxRecords {
		objects = append(objects, record(fmt.Sprintf("old-%d", i), mine, droverv1.Changed, 1000*time.Hour))
	}
	w := newWorld(t, objects, nil)
	read := func(key Key) (all []AuditItem) {
		t.Helper()
		recorded := w.get(w.view.getAudit, key)
		if err := json.Unmarshal(recorded.Body.Bytes(), &all); err != nil || recorded.Code != http.StatusOK {
			t.Fatalf("status %d, %v: %s", recorded.Code, err, recorded.Body)
		}
		return all
	}
	got := read(Key{drover, "team-web", "ams-web-01"})
	if len(got) != maxRecords || got[0].Action != "Scaled" || got[1].Action != "Created" || got[0].User != "alice" || got[0].Object != "PacketMachineConfig/b" || got[0].Changes[0].To != "4" {
		t.Errorf("%d records, the first are %+v", len(got), got[:min(2, len(got))])
	}
	if got := read(Key{capi, anywherev1.SystemNamespace, "plain"}); len(got) != 0 {
		t.Errorf("a cluster of Cluster API has the records %+v", got)
	}
	w.allow(func(kind, _ string) error { return forbidden(kind) })
	if recorded := w.get(w.view.getAudit, Key{drover, "team-web", "ams-web-01"}); recorded.Code != http.StatusForbidden || !strings.Contains(recorded.Body.String(), "drover-viewer") {
		t.Errorf("status %d: %s", recorded.Code, recorded.Body)
	}
}

func TestNodesHaveTheirState(t *testing.T) {
	w := newWorld(t, fleet(fleettest.OnFire).Objects(2), nil)
	d, err := w.view.detail(t.Context(), Key{drover, "team-batch", "fra-batch-01"})
	if err != nil {
		t.Fatal(err)
	}
	var ready, missing []string
	for _, m := range d.Machines {
		if m.NodeReady == "True" && m.Node == m.Name && m.Plan != "" && m.Address != "" {
			ready = append(ready, m.Name)
		}
		if m.Node == "" && m.NodeReady == "" {
			missing = append(missing, m.Name)
		}
	}
	if len(ready) != 6 || len(missing) != 1 {
		t.Errorf("%d nodes are ready and %v are missing of %+v", len(ready), missing, d.Machines)
	}
}
