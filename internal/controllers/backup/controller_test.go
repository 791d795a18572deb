package backup

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/model/backup/archive"
	"github.com/drover-dev/drover/internal/model/backup/objects"
	"github.com/drover-dev/drover/internal/model/backup/schedule"
	"github.com/drover-dev/drover/internal/model/backup/settings"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/model/scheme"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is a management cluster with the settings of backups, whose time stands still.
type world struct {
	*testing.T
	client.Client

	controller *Controller
	clock      *clocktesting.FakePassiveClock
	events     *record.FakeRecorder
	dir        string
	key        archive.Key
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	kinds, err := scheme.New()
	must(t, err)
	c, err := client.New(server.Config, client.Options{Scheme: kinds})
	must(t, err)
	figures, err := NewFigures(prometheus.NewRegistry())
	must(t, err)
	w := &world{T: t, Client: c, clock: clocktesting.NewFakePassiveClock(time.Now()), events: record.NewFakeRecorder(10), dir: t.TempDir()}
	w.controller = &Controller{Client: c, Live: c, Events: w.events, Clock: w.clock, Figures: figures, Registry: "127.0.0.1:5000"}
	authority, err := pki.NewAuthority("shepherd", time.Now(), time.Hour)
	must(t, err)
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	w.key = archive.Key{Identities: []age.Identity{identity}, Signers: authority.Certs}
	s := settings.Settings{Schedule: schedule.Schedule{Every: time.Hour, Keep: 2}, Location: w.dir, Recipients: []string{identity.Recipient().String()}}
	manager := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace(t), Name: "shepherd"}}
	manager.Spec.ManagementCluster.Name = "shepherd"
	for _, namespace := range []string{config.Namespace, anywherev1.SystemNamespace} {
		must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	}
	for _, o := range []client.Object{
		manager,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: "shepherd-ca"}, Data: map[string][]byte{"tls.crt": authority.PEM(), "tls.key": authority.Key}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: config.BackupSecret}, Data: s.Data()},
	} {
		must(t, c.Create(t.Context(), o))
		t.Cleanup(func() { _ = c.Delete(context.Background(), o) })
	}
	t.Cleanup(func() {
		_ = c.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: config.BackupStatus}})
	})
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) reconcile() ctrl.Result {
	w.Helper()
	result, err := w.controller.Reconcile(w.Context(), ctrl.Request{})
	must(w.T, err)
	return result
}

func (w *world) files() []string {
	w.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, "*", "shepherd", "*.snapshot"))
	must(w.T, err)
	return found
}

func (w *world) status() schedule.Status {
	w.Helper()
	found := &corev1.ConfigMap{}
	must(w.T, w.Get(w.Context(), client.ObjectKey{Namespace: config.Namespace, Name: config.BackupStatus}, found))
	return settings.ParseStatus(found.Data)
}

func TestBackupsAreMadeOnSchedule(t *testing.T) {
	w := newWorld(t)
	if r := w.reconcile(); r.RequeueAfter < 59*time.Minute || r.RequeueAfter > time.Hour {
		t.Errorf("the next backup is due after %s", r.RequeueAfter)
	}
	files := w.files()
	if len(files) != 1 || w.status().Last.Location != files[0] || w.status().Kept != 1 || w.status().Failure != "" {
		t.Fatalf("backups %v, status %+v", files, w.status())
	}
	if got := testutil.ToFloat64(w.controller.Figures.last); got < float64(w.clock.Now().Add(-time.Minute).Unix()) {
		t.Errorf("the metric of the newest backup is %f", got)
	}

	t.Log("only the recovery key opens it, and it has what a recovery needs")
	file, err := os.Open(files[0])
	must(t, err)
	defer file.Close()
	var content strings.Builder
	m, err := archive.Objects().Read(file, w.key, &content)
	must(t, err)
	set, err := objects.Decode([]byte(content.String()))
	must(t, err)
	if m.Cluster != "shepherd" || m.Registry != "127.0.0.1:5000" || len(set.Secret(client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: "shepherd-ca"})["tls.key"]) == 0 {
		t.Errorf("manifest %+v, %d objects", m, len(set))
	}
	if set.Secret(client.ObjectKey{Namespace: config.Namespace, Name: config.BackupSecret}) != nil {
		t.Error("it contains the settings of backups, with the password of the registry")
	}
	raw, err := os.ReadFile(files[0])
	must(t, err)
	if strings.Contains(string(raw), "shepherd") {
		t.Error("it is not encrypted")
	}

	t.Log("none is made before it is due, and the oldest is deleted")
	w.reconcile()
	if got := w.files(); len(got) != 1 {
		t.Errorf("backups %v", got)
	}
	for range 2 {
		w.clock.SetTime(w.clock.Now().Add(61 * time.Minute))
		w.reconcile()
	}
	if got := w.files(); len(got) != 2 || got[0] == files[0] {
		t.Errorf("backups %v, want two without %s", got, files[0])
	}
}

// TestRecoveredClusterBacksItselfUp checks that a new management cluster doesn't rely on a recent
// backup of the one that it replaces, which another CA signed.
func TestRecoveredClusterBacksItselfUp(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	must(t, w.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: config.BackupStatus}}))
	dir := filepath.Join(w.dir, storage.Management)
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	must(t, os.Rename(dir, dir+".kept"))
	must(t, os.WriteFile(dir, nil, 0o600)) // It fails at first.
	if r := w.reconcile(); w.status().Failure == "" || r.RequeueAfter > 10*time.Minute {
		t.Errorf("status %+v, again after %s", w.status(), r.RequeueAfter)
	}
	must(t, os.Remove(dir))
	must(t, os.Rename(dir+".kept", dir))
	for range 2 {
		w.reconcile()
	}
	if files := w.files(); len(files) != 2 || w.status().Last.Location != files[1] {
		t.Errorf("backups %v, status %+v", files, w.status())
	}
}

func TestFailuresAreReportedOnce(t *testing.T) {
	w := newWorld(t)
	w.reconcile()
	newest := w.status().Last
	must(t, os.RemoveAll(w.dir))
	must(t, os.WriteFile(w.dir, nil, 0o600)) // Nothing can be written there.
	w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
	for range 3 {
		if r := w.reconcile(); r.RequeueAfter == 0 || r.RequeueAfter > 10*time.Minute {
			t.Errorf("the next attempt is after %s", r.RequeueAfter)
		}
	}
	if w.status().Failure == "" || testutil.ToFloat64(w.controller.Figures.failing) != 1 {
		t.Errorf("status %+v", w.status())
	}
	if w.status().Last != newest {
		t.Errorf("status %+v no longer has the newest backup, %+v", w.status(), newest)
	}
	if n := len(w.events.Events); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	must(t, os.Remove(w.dir))
	w.reconcile()
	if w.status().Failure != "" || len(w.files()) != 1 || len(w.events.Events) != 2 {
		t.Errorf("status %+v, backups %v, %d events", w.status(), w.files(), len(w.events.Events))
	}
}

func TestMisconfiguredBackupsAreReported(t *testing.T) {
	w := newWorld(t)
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: config.Namespace, Name: config.BackupSecret}
	must(t, w.Get(t.Context(), key, secret))
	for name, tt := range map[string]struct {
		key, value, want string
	}{
		"no location":     {"location", "", "no location"},
		"a bad interval":  {"interval", "often", "not a duration"},
		"nobody can read": {"recipients", "", "no age recipient"},
	} {
		changed := secret.DeepCopy()
		must(t, w.Get(t.Context(), key, changed))
		changed.Data = map[string][]byte{}
		for k, v := range secret.Data {
			changed.Data[k] = v
		}
		changed.Data[tt.key] = []byte(tt.value)
		must(t, w.Update(t.Context(), changed))
		if r := w.reconcile(); r.RequeueAfter != 0 || !strings.Contains(w.status().Failure, tt.want) {
			t.Errorf("%s: again after %s, status %+v", name, r.RequeueAfter, w.status())
		}
	}
	if got := w.files(); len(got) > 0 {
		t.Errorf("backups %v", got)
	}
}
