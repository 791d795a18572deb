package schedule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/backup/archive"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/workload/etcd/backup"
)

// world is a schedule of a cluster named "dev", and a directory for its snapshots.
type world struct {
	*testing.T
	client.Client
	*Controller

	clock  *clocktesting.FakeClock
	events *record.FakeRecorder
	dir    string
	// failure is why snapshots fail, or nil.
	failure error
	// attempts counts snapshots.
	attempts chan backup.Options
}

var midnight = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	w := &world{T: t, dir: t.TempDir(), clock: clocktesting.NewFakeClock(midnight), events: record.NewFakeRecorder(100), attempts: make(chan backup.Options, 100)}
	w.must(errors.Join(corev1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), droverv1.AddToScheme(scheme)))
	identity, err := age.GenerateX25519Identity()
	w.must(err)
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "dev"}}
	s := &droverv1.EtcdSnapshotSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "nightly", CreationTimestamp: metav1.NewTime(midnight)}}
	s.Spec = droverv1.EtcdSnapshotScheduleSpec{
		ClusterName: "dev", Schedule: "0 * * * *", Location: w.dir, Recipients: []string{identity.Recipient().String()}, Keep: ptr.To(int32(2)),
	}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, s, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "empty"}}).WithStatusSubresource(s).Build()
	w.restart()
	return w
}

// restart replaces the controller, as the end of a manager does.
func (w *world) restart() {
	w.Helper()
	w.Controller = &Controller{Client: w.Client, Live: w.Client, Save: w.save, Events: w.events, Clock: w.clock}
	w.prepare(w.Context())
}

// save saves something else than a snapshot of etcd.
func (w *world) save(ctx context.Context, o backup.Options) (backup.Saved, error) {
	w.attempts <- o
	if w.failure != nil {
		return backup.Saved{}, w.failure
	}
	created := o.Now.UTC().Truncate(time.Second)
	entry, err := o.Storage.Put(ctx, storage.Name(created), func(to io.Writer) error {
		_, err := io.WriteString(to, "sealed")
		return err
	})
	return backup.Saved{Entry: entry, Manifest: archive.Manifest{Created: created, Revision: 7}}, err
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

var key = client.ObjectKey{Namespace: "fleet", Name: "nightly"}

// reconcile reconciles until no snapshot is being saved, and returns when the next reconcile is.
func (w *world) reconcile() time.Duration {
	w.Helper()
	for range 10 {
		result, err := w.Reconcile(w.Context(), ctrl.Request{NamespacedName: key})
		w.must(err)
		w.operations.Wait()
		select {
		case <-w.ended:
		default:
			return result.RequeueAfter
		}
	}
	w.Fatal("one snapshot after the other")
	return 0
}

func (w *world) get() *droverv1.EtcdSnapshotSchedule {
	w.Helper()
	s := &droverv1.EtcdSnapshotSchedule{}
	w.must(w.Get(w.Context(), key, s))
	return s
}

func (w *world) change(edit func(*droverv1.EtcdSnapshotSchedule)) {
	w.Helper()
	s := w.get()
	edit(s)
	w.must(w.Update(w.Context(), s))
}

// expect fails unless the condition, attempts and files are as wanted.
func (w *world) expect(status metav1.ConditionStatus, reason, message string, attempts, kept int) {
	w.Helper()
	conditions := w.get().Status.Conditions
	if len(conditions) != 1 || conditions[0].Status != status || conditions[0].Reason != reason || !strings.Contains(conditions[0].Message, message) {
		w.Errorf("conditions %+v, want %s %s %q", conditions, status, reason, message)
	}
	all, err := storage.Directory{Path: w.dir + "/fleet/dev"}.List(w.Context())
	if err != nil || len(all) != kept || len(w.attempts) != attempts {
		w.Errorf("%d attempts and files %v (%v), want %d and %d", len(w.attempts), all, err, attempts, kept)
	}
}

func TestSnapshotsAreSavedWhenTheyAreDue(t *testing.T) {
	w := newWorld(t)
	if next := w.reconcile(); next != time.Hour {
		t.Errorf("next in %s", next)
	}
	w.expect(metav1.ConditionTrue, droverv1.SnapshotScheduledReason, "not due", 0, 0)
	for n := range 3 {
		w.clock.Step(time.Hour)
		if next := w.reconcile(); next != time.Hour {
			t.Errorf("next in %s", next)
		}
		w.expect(metav1.ConditionTrue, droverv1.SnapshotSavedReason, "20260501T0", n+1, min(n+1, 2))
	}
	status := w.get().Status
	if last := status.LastSnapshot; last == nil || !last.Time.Time.Equal(midnight.Add(3*time.Hour)) || last.Revision != 7 || last.Size != 6 || !strings.HasPrefix(last.Location, w.dir) {
		t.Errorf("last snapshot %+v", last)
	}
	if status.NextTime == nil || !status.NextTime.Time.Equal(midnight.Add(4*time.Hour)) {
		t.Errorf("next time %v", status.NextTime)
	}
	if o := <-w.attempts; o.Cluster.Name != "dev" || len(o.Recipients) != 1 {
		t.Errorf("saved %+v", o)
	}
	w.reconcile()
	w.expect(metav1.ConditionTrue, droverv1.SnapshotSavedReason, "20260501T030000Z", 2, 2)
}

func TestFailuresAreReportedAndTriedAgainLater(t *testing.T) {
	w := newWorld(t)
	w.failure = errors.New("etcd has no quorum")
	w.clock.Step(time.Hour)
	if next := w.reconcile(); next != 2*time.Minute {
		t.Errorf("next in %s", next)
	}
	w.expect(metav1.ConditionFalse, droverv1.SnapshotFailedReason, "etcd has no quorum", 1, 0)
	for range 5 { // Events don't make it faster.
		w.reconcile()
	}
	w.expect(metav1.ConditionFalse, droverv1.SnapshotFailedReason, "etcd has no quorum", 1, 0)
	w.clock.Step(2 * time.Minute)
	if next := w.reconcile(); next != 4*time.Minute || w.get().Status.Failures != 2 {
		t.Errorf("next in %s after %d failures", next, w.get().Status.Failures)
	}
	if len(w.events.Events) != 1 {
		t.Errorf("%d events about one problem", len(w.events.Events))
	}
	w.failure = nil
	w.clock.Step(4 * time.Minute)
	w.reconcile()
	w.expect(metav1.ConditionTrue, droverv1.SnapshotSavedReason, "20260501T010600Z", 3, 1)
	if failures := w.get().Status.Failures; failures != 0 {
		t.Errorf("%d failures after a snapshot", failures)
	}
}

func TestInterruptedSnapshotsAreSavedByTheNextManager(t *testing.T) {
	w := newWorld(t)
	w.clock.Step(time.Hour)
	_, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	w.must(err)
	w.operations.Wait()
	w.expect(metav1.ConditionUnknown, droverv1.SnapshotRunningReason, "being saved", 1, 1)
	w.restart() // The outcome is lost.
	w.reconcile()
	w.clock.Step(2 * time.Minute)
	w.reconcile()
	w.expect(metav1.ConditionTrue, droverv1.SnapshotSavedReason, "20260501T010200Z", 2, 2)
}

func TestProblemsOfASchedule(t *testing.T) {
	for name, tt := range map[string]struct {
		edit    func(*droverv1.EtcdSnapshotSchedule)
		reason  string
		message string
		// waits means that it is reconciled again without an event.
		waits bool
	}{
		"the schedule can't be read": {func(s *droverv1.EtcdSnapshotSchedule) { s.Spec.Schedule = "nightly" }, droverv1.SnapshotInvalidReason, "spec.schedule", false},
		"no credentials":             {func(s *droverv1.EtcdSnapshotSchedule) { s.Spec.Location = "s3://bucket" }, droverv1.SnapshotInvalidReason, "spec.secretRef", false},
		"the Secret is missing": {func(s *droverv1.EtcdSnapshotSchedule) {
			s.Spec.SecretRef = &droverv1.SecretReference{Name: "s3"}
		}, droverv1.SnapshotSecretReason, `Secret "s3" not found`, true},
		"the Secret lacks keys": {func(s *droverv1.EtcdSnapshotSchedule) {
			s.Spec.Location, s.Spec.SecretRef = "s3://bucket", &droverv1.SecretReference{Name: "empty"}
		}, droverv1.SnapshotSecretReason, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", true},
		"the cluster is missing": {func(s *droverv1.EtcdSnapshotSchedule) { s.Spec.ClusterName = "gone" }, droverv1.SnapshotClusterMissingReason, `Cluster "gone" not found`, false},
		"suspended":              {func(s *droverv1.EtcdSnapshotSchedule) { s.Spec.Suspend = true }, droverv1.SnapshotSuspendedReason, "suspended", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.change(tt.edit)
			w.clock.Step(time.Hour)
			next := w.reconcile()
			w.expect(metav1.ConditionFalse, tt.reason, tt.message, 0, 0)
			if (next > 0) != tt.waits || next > 0 && next < time.Minute {
				t.Errorf("next in %s", next)
			}
		})
	}
}

func TestInvalidSchedulesAreRejected(t *testing.T) {
	valid := newWorld(t).get()
	if _, err := (rules{}).ValidateUpdate(t.Context(), nil, valid); err != nil {
		t.Errorf("a valid one: %v", err)
	}
	const private = "AGE-SECRET-KEY-1QQQ"
	for want, edit := range map[string]func(*droverv1.EtcdSnapshotScheduleSpec){
		"spec.schedule":        func(s *droverv1.EtcdSnapshotScheduleSpec) { s.Schedule = "* * * * *" },
		"spec.recipients[0]":   func(s *droverv1.EtcdSnapshotScheduleSpec) { s.Recipients[0] = private },
		"an absolute path":     func(s *droverv1.EtcdSnapshotScheduleSpec) { s.Location = "backup" },
		"unsupported location": func(s *droverv1.EtcdSnapshotScheduleSpec) { s.Location = "ftp://x" },
		"invalid location":     func(s *droverv1.EtcdSnapshotScheduleSpec) { s.Location = "oci://UPPER/x" },
		"spec.secretRef must":  func(s *droverv1.EtcdSnapshotScheduleSpec) { s.Location = "s3://bucket" },
	} {
		s := valid.DeepCopy()
		edit(&s.Spec)
		_, err := rules{}.ValidateCreate(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), private) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestOldSnapshotsThatStayAreReported(t *testing.T) {
	w := newWorld(t)
	saved, err := run{options: backup.Options{Storage: stuck{storage.Directory{Path: t.TempDir()}}, Now: midnight}, keep: 1, save: w.save}.do(t.Context())
	w.must(err)
	if got := saved.(result); got.pruneProblem == "" || got.Name != "20260501T000000Z" {
		t.Errorf("got %+v", got)
	}
	c := condition(facts{ended: true, pruneProblem: "denied", saved: &droverv1.SavedSnapshot{Name: "x"}})
	if c.Status != metav1.ConditionFalse || c.Reason != droverv1.SnapshotPruneFailedReason {
		t.Errorf("condition %+v", c)
	}
}

func TestHostileSnapshotsDontFillTheDisk(t *testing.T) {
	dir := storage.Directory{Path: t.TempDir()}
	_, err := limited{dir, 10}.Put(t.Context(), "20260501T000000Z", func(w io.Writer) error {
		for range 1000 {
			if _, err := io.WriteString(w, "1234"); err != nil {
				return err
			}
		}
		return nil
	})
	if all, _ := dir.List(t.Context()); err == nil || !strings.Contains(err.Error(), "larger than") || len(all) > 0 {
		t.Errorf("got %v and %v", err, all)
	}
	if _, err := (limited{dir, 10}).Put(t.Context(), "20260501T000000Z", func(w io.Writer) error { _, err := io.WriteString(w, "1234567890"); return err }); err != nil {
		t.Errorf("an archive of that size: %v", err)
	}
}

// stuck is a storage whose archives can't be listed.
type stuck struct{ storage.Storage }

func (stuck) List(context.Context) ([]storage.Entry, error) { return nil, errors.New("denied") }

func TestCredentialsComeFromTheSecretAlone(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "host")
	access, err := accessTo("s3://bucket", map[string][]byte{"AWS_SECRET_ACCESS_KEY": []byte("secret\n"), "AWS_ENDPOINT_URL_S3": []byte("https://s3.example.com")})
	if err != nil || access.S3.AccessKey != "" || access.S3.SecretKey != "secret" || access.S3.Endpoint != "https://s3.example.com" {
		t.Errorf("access %+v (%v)", access.S3, err)
	}
	access, err = accessTo("oci://registry.example.com/x", map[string][]byte{"username": []byte("u"), "password": []byte("p")})
	if err != nil || access.Registry.Transport == nil {
		t.Fatal(err)
	}
	if config, err := access.Registry.Auth.Authorization(); err != nil || config.Username != "u" || config.Password != "p" {
		t.Errorf("credentials %+v (%v)", config, err)
	}
	if _, err := accessTo("oci://registry.example.com/x", map[string][]byte{"ca.crt": []byte("none")}); err == nil {
		t.Error("a CA without a certificate is accepted")
	}
}

func TestMetricsDontGrowWithTheFleet(t *testing.T) {
	w := newWorld(t)
	w.clock.Step(time.Hour)
	w.reconcile()
	failing := &droverv1.EtcdSnapshotSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "failing", CreationTimestamp: metav1.NewTime(midnight)}}
	failing.Status.Conditions = []metav1.Condition{failed("no quorum")}
	failing.Status.Conditions[0].Type = droverv1.SnapshotsReady
	suspended := &droverv1.EtcdSnapshotSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "suspended", CreationTimestamp: metav1.NewTime(midnight.AddDate(-1, 0, 0))}}
	suspended.Spec.Suspend = true
	w.must(errors.Join(w.Create(t.Context(), failing), w.Create(t.Context(), suspended)))
	err := testutil.CollectAndCompare(collector{w.Client}, strings.NewReader(fmt.Sprintf(`
# HELP drover_etcd_snapshot_oldest_timestamp_seconds When the last snapshot was taken of the cluster for which that is longest ago, among schedules that are not suspended.
# TYPE drover_etcd_snapshot_oldest_timestamp_seconds gauge
drover_etcd_snapshot_oldest_timestamp_seconds %d
# HELP drover_etcd_snapshot_schedules Schedules of etcd snapshots by state.
# TYPE drover_etcd_snapshot_schedules gauge
drover_etcd_snapshot_schedules{state="Failing"} 1
drover_etcd_snapshot_schedules{state="Ready"} 1
drover_etcd_snapshot_schedules{state="Suspended"} 1
`, midnight.Unix())))
	if err != nil {
		t.Error(err)
	}
}
