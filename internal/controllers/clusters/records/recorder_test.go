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

func newRecorder(t *testing.T, keep int) *Recorder {
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
	return &Recorder{Client: c, Live: c, Keep: keep}
}

func (r *Recorder) all(t *testing.T) []droverv1.AuditRecord {
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
func (r *Recorder) flood(t *testing.T, namespace, name string, changes int) {
	t.Helper()
	for i := range changes {
		c := cluster(types.UID(fmt.Sprintf("%s-%03d", name, i)))
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
func (r *Recorder) tally(t *testing.T) (left, evicted map[string]int) {
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
	r.flood(t, "team", "noisy", 35)
	left, evicted := r.tally(t)
	if left["team/quiet"] != 3 || left["team/noisy"] < 10 || left["team/noisy"] > 12 {
		t.Errorf("left are %v", left)
	}
	if left["team/noisy"]+evicted["team/noisy"] != 35 || len(evicted) != 1 {
		t.Errorf("evicted are %v", evicted)
	}
}

func TestTenantsEvictOnlyTheirOwnRecords(t *testing.T) {
	r := newRecorder(t, 0)
	r.KeepNamespace = 10
	r.flood(t, "other", "prod", 3)
	for i := range 40 {
		r.flood(t, "team", fmt.Sprintf("c%02d", i), 1)
	}
	left, evicted := r.tally(t)
	if left["other/prod"] != 3 {
		t.Errorf("the other tenant has %d records left", left["other/prod"])
	}
	delete(left, "other/prod")
	if len(left) < 10 || len(left) > 12 || len(left)+evicted["team/"] != 40 {
		t.Errorf("left are %d, evicted %v", len(left), evicted)
	}
}

func TestKilledEvictionCountsOnce(t *testing.T) {
	r := newRecorder(t, 10)
	r.flood(t, "team", "noisy", 10)
	stubborn := &noDeletes{Client: r.Client}
	killed := &Recorder{Client: stubborn, Live: r.Live, Keep: 5}
	g := group{droverv1.AuditedCluster{Namespace: "team", Name: "noisy"}, 5}
	for range 2 {
		if err := killed.evict(t.Context(), g); err == nil {
			t.Fatal("it was not killed")
		}
	}
	if err := r.evict(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if left, evicted := r.tally(t); left["team/noisy"] != 5 || evicted["team/noisy"] != 5 {
		t.Errorf("left are %v, evicted %v", left, evicted)
	}
}

// noDeletes is killed before it deletes anything.
type noDeletes struct{ client.Client }

func (*noDeletes) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errors.New("killed")
}
