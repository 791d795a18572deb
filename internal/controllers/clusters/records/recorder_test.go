package records

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/audit"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func user(name string) authenticationv1.UserInfo { return authenticationv1.UserInfo{Username: name} }

func cluster(uid types.UID) *anywherev1.Cluster {
	c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "billy", Namespace: "herd", UID: uid, Generation: 1}}
	c.Spec.KubernetesVersion = "1.35"
	return c
}

// upgraded returns a copy of a Cluster whose Kubernetes version a user changed.
func upgraded(t *testing.T, old *anywherev1.Cluster, by string) *anywherev1.Cluster {
	t.Helper()
	updated := old.DeepCopy()
	updated.Spec.KubernetesVersion = "1.36"
	if err := audit.Stamp(old, updated, user(by), noon); err != nil {
		t.Fatal(err)
	}
	updated.Generation++
	return updated
}

// recorder is a Recorder and the number of changes that tests made it record.
type recorder struct {
	*Recorder

	changes int
}

func newRecorder(t *testing.T, keep int) *recorder {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := droverv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(kubetest.SharedWithoutWebhooks(t).Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteAllOf(t.Context(), &droverv1.AuditRecord{}); err != nil { // from the previous test
		t.Fatal(err)
	}
	return &recorder{Recorder: &Recorder{Client: c, Live: c, Keep: keep}}
}

func (r *recorder) all(t *testing.T) []droverv1.AuditRecord {
	t.Helper()
	list := &droverv1.AuditRecordList{}
	if err := r.Live.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestPendingRecordsAreWrittenOnce(t *testing.T) {
	r := newRecorder(t, 0)
	c := cluster("once")
	if err := audit.Stamp(nil, c, user("creator"), noon); err != nil {
		t.Fatal(err)
	}
	c = upgraded(t, c, "administrator")
	killed := c.DeepCopy() // the process was killed before it wrote the status
	for _, one := range []*anywherev1.Cluster{killed, c, c} {
		if err := r.Record(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	if c.Status.AuditedGeneration != 2 {
		t.Errorf("generation %d is on record, want 2", c.Status.AuditedGeneration)
	}
	if err := r.RecordDeletion(t.Context(), c, user("operator"), noon); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range r.all(t) {
		got = append(got, fmt.Sprintf("%s %s %s/%s", one.Spec.User, one.Spec.Action, one.Spec.Cluster.Namespace, one.Spec.Cluster.Name))
	}
	slices.Sort(got)
	if d := cmp.Diff([]string{"administrator Upgraded herd/billy", "creator Created herd/billy", "operator Deleted herd/billy"}, got); d != "" {
		t.Error(d)
	}
}

func TestRecordsAreImmutable(t *testing.T) {
	r := newRecorder(t, 0)
	c := cluster("fixed")
	if err := r.RecordDeletion(t.Context(), c, user("creator"), noon); err != nil {
		t.Fatal(err)
	}
	one := r.all(t)[0]
	one.Spec.User = "administrator"
	if err := r.Client.Update(t.Context(), &one); !apierrors.IsInvalid(err) {
		t.Errorf("a record was changed: %v", err)
	}
}

// flood records changes of a cluster.
func (r *recorder) flood(t *testing.T, namespace, name string, changes int) {
	t.Helper()
	for range changes {
		r.changes++
		c := cluster(types.UID(fmt.Sprintf("%05d-%s", r.changes, name)))
		c.Namespace, c.Name = namespace, name
		if err := audit.Stamp(nil, c, user("creator"), noon); err != nil {
			t.Fatal(err)
		}
		if err := r.Record(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// tally counts records by cluster, and the evicted ones.
func (r *recorder) tally(t *testing.T) (left, evicted map[string]int) {
	t.Helper()
	left, evicted = map[string]int{}, map[string]int{}
	for _, one := range r.all(t) {
		key := one.Spec.Cluster.Namespace + "/" + one.Spec.Cluster.Name
		if one.Spec.Action != droverv1.Evicted {
			left[key]++
			continue
		}
		if evicted[key] > 0 {
			t.Errorf("%s has two counts", key)
		}
		evicted[key] = int(one.Spec.Evicted)
	}
	return left, evicted
}

func TestEvictionsAreCountedAndLeaveOthersAlone(t *testing.T) {
	r := newRecorder(t, 10)
	r.flood(t, "team", "quiet", 3)
	for range 2 {
		r.flood(t, "team", "noisy", 35)
		r.pruneDue(t.Context())
	}
	left, evicted := r.tally(t)
	if left["team/quiet"] != 3 || left["team/noisy"] != 10 || evicted["team/noisy"] != 60 || len(evicted) != 1 {
		t.Errorf("left are %v, evicted %v", left, evicted)
	}
}

// TestClustersEvictOnlyTheirOwnRecords floods a namespace with changes of one of its clusters.
func TestClustersEvictOnlyTheirOwnRecords(t *testing.T) {
	r := newRecorder(t, 0)
	r.KeepNamespace = 10
	r.flood(t, "team", "quiet", 3)
	r.flood(t, "team", "noisy", 40)
	r.pruneDue(t.Context())
	left, evicted := r.tally(t)
	if left["team/quiet"] != 3 || left["team/noisy"] != 7 || evicted["team/noisy"] != 33 || len(evicted) != 1 {
		t.Errorf("left are %v, evicted %v", left, evicted)
	}
}

// TestTenantsEvictOnlyTheirOwnRecords floods a namespace with new clusters.
func TestTenantsEvictOnlyTheirOwnRecords(t *testing.T) {
	r := newRecorder(t, 3)
	r.KeepNamespace = 10
	r.flood(t, "other", "prod", 3)
	r.flood(t, "team", "c00", 5)
	r.pruneDue(t.Context())
	for i := range 40 {
		r.flood(t, "team", fmt.Sprintf("c%02d", i), 1)
		if i%15 == 0 {
			r.pruneDue(t.Context())
		}
	}
	r.pruneDue(t.Context())
	left, evicted := r.tally(t)
	if left["other/prod"] != 3 {
		t.Errorf("the other tenant has %d records left", left["other/prod"])
	}
	delete(left, "other/prod")
	// A count per cluster would be without limit.
	if len(left) != 10 || evicted["team/"] != 35 || len(evicted) != 1 {
		t.Errorf("left are %d, evicted %v", len(left), evicted)
	}
}

func TestPlanOfEvictions(t *testing.T) {
	for name, tc := range map[string]struct {
		clusters            map[string]int
		keep, keepNamespace int
		want                map[string]int
	}{
		"no limits":                           {clusters: map[string]int{"a": 9, "b": 1}},
		"within limits":                       {clusters: map[string]int{"a": 5, "b": 1}, keep: 5, keepNamespace: 6},
		"the limit of a cluster":              {clusters: map[string]int{"a": 9, "b": 1}, keep: 5, want: map[string]int{"a": 4}},
		"the limit of a namespace":            {clusters: map[string]int{"a": 9, "b": 4, "c": 1}, keepNamespace: 6, want: map[string]int{"a": 7, "b": 1}},
		"both":                                {clusters: map[string]int{"a": 9, "b": 4}, keep: 5, keepNamespace: 8, want: map[string]int{"a": 5}},
		"the oldest of clusters with as many": {clusters: map[string]int{"a": 1, "b": 1, "c": 1}, keepNamespace: 1, want: map[string]int{"a": 1, "b": 1}},
	} {
		all := byCluster{}
		for cluster, n := range tc.clusters {
			for i := range n {
				one := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", cluster, i)}}
				all[cluster] = append(all[cluster], one)
			}
		}
		if d := cmp.Diff(tc.want, plan(all, tc.keep, tc.keepNamespace), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestRequestsDoNotWaitForEvictions records a change in a namespace whose records exceed the limit.
func TestRequestsDoNotWaitForEvictions(t *testing.T) {
	r := newRecorder(t, 0)
	r.flood(t, "herd", "billy", 10)
	busy := &unavailable{Client: r.Client}
	webhook := &Recorder{Client: busy, Live: busy, Keep: 5}
	change := audit.ObjectChange(cluster("c"), droverv1.AuditedObject{}, nil, admissionv1.AdmissionRequest{UID: "request"}, noon)
	if err := webhook.RecordObject(t.Context(), change); err != nil || busy.calls > 0 {
		t.Errorf("the request lists or deletes %d times: %v", busy.calls, err)
	}
	webhook.pruneDue(t.Context())
	if busy.calls == 0 || !webhook.due["herd"] {
		t.Error("records are not pruned after the request")
	}
}

// TestLimitsAreEnforcedInTheBackground runs the recorder as the manager does.
func TestLimitsAreEnforcedInTheBackground(t *testing.T) {
	r := newRecorder(t, 5)
	r.flood(t, "team", "noisy", 10)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	for deadline := time.Now().Add(kubetest.Patience); len(r.all(t)) != 6; { // 5 and a count
		if time.Now().After(deadline) {
			t.Fatalf("there are %d records", len(r.all(t)))
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestKilledEvictionCountsOnce kills evictions before each of their deletions.
func TestKilledEvictionCountsOnce(t *testing.T) {
	for name, limits := range map[string]struct{ keep, keepNamespace, left int }{
		"of a cluster":                    {5, 0, 15},
		"of clusters with the most":       {0, 12, 12},
		"of all records of some clusters": {5, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t, limits.keep)
			r.KeepNamespace = limits.keepNamespace
			for _, cluster := range []string{"a", "b", "c", "d", "e"} {
				r.flood(t, "team", cluster, 2)
			}
			r.flood(t, "team", "noisy", 10)
			for deletions := range 20 {
				killed := &Recorder{Client: &killer{Client: r.Client, deletions: deletions % 3}, Live: r.Live, Keep: r.Keep, KeepNamespace: r.KeepNamespace}
				if killed.prune(t.Context(), "team") == nil {
					break
				}
			}
			if err := r.prune(t.Context(), "team"); err != nil {
				t.Fatal(err)
			}
			left, evicted := r.tally(t)
			if sum(left) != limits.left || sum(evicted) != 20-limits.left {
				t.Errorf("left are %v, evicted %v", left, evicted)
			}
		})
	}
}

func sum(counts map[string]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

func TestEvictedCountsOfAnEarlierDroverAreAdded(t *testing.T) {
	r := newRecorder(t, 5)
	c := cluster("0") // sorted before those of flood
	c.Annotations = map[string]string{audit.Annotation: `[{"generation":1,"sequence":7,"action":"Evicted","user":"drover","time":"2026-05-01T12:00:00.000000Z","evicted":42,"metadata":true}]`}
	if err := r.Record(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r.flood(t, c.Namespace, c.Name, 5)
	r.pruneDue(t.Context())
	if left, evicted := r.tally(t); left["herd/billy"] != 5 || evicted["herd/billy"] != 42 {
		t.Errorf("left are %v, evicted %v", left, evicted)
	}
}

// unavailable counts what it fails to list and delete.
type unavailable struct {
	client.Client

	calls int
}

func (c *unavailable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	c.calls++
	return errors.New("unavailable")
}

func (c *unavailable) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	c.calls++
	return errors.New("unavailable")
}

// killer is killed after a number of deletions.
type killer struct {
	client.Client

	deletions int
}

func (k *killer) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	if k.deletions == 0 {
		return errors.New("killed")
	}
	k.deletions--
	return k.Client.Delete(ctx, o, options...)
}
