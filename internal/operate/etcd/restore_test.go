package etcd

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/model/backup/archive"
	"github.com/drover-dev/drover/internal/workload/etcd"
)

func TestEveryMemberIsRestoredFromTheSameSnapshot(t *testing.T) {
	w := newWorld(t, controlPlanes(3)...)
	var pausedWhileStopped bool
	w.host.fail = func(_, verb string) error {
		if verb == "stop" {
			ours, upstream, _ := w.paused()
			pausedWhileStopped = ours && upstream
		}
		return nil
	}
	if _, err := w.restore().Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("cp-0_stop cp-1_stop cp-2_stop cp-0_restore cp-1_restore cp-2_restore " +
		"cp-0_start-etcd cp-1_start-etcd cp-2_start-etcd cp-0_await-etcd cp-1_await-etcd cp-2_await-etcd " +
		"cp-0_start-api cp-1_start-api cp-2_start-api cp-0_await-api cp-1_await-api cp-2_await-api " +
		"cp-0_restart-kubelet cp-1_restart-kubelet cp-2_restart-kubelet cp-0_finish cp-1_finish cp-2_finish")
	slices.Sort(w.host.calls[:3]) // machines stop at the same time
	if diff := cmp.Diff(want, strings.Fields(strings.ReplaceAll(strings.Join(w.host.calls, "\n"), " ", "_"))); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	for name, content := range w.host.got {
		if !bytes.Equal(content, w.snapshot) {
			t.Errorf("machine %s got %d bytes that are not the snapshot", name, len(content))
		}
		flags := strings.Join(w.host.flags[name], " ")
		if !strings.Contains(flags, "--initial-cluster cp-0=https://cp-0:2380,cp-1=https://cp-1:2380,cp-2=https://cp-2:2380 ") ||
			!strings.Contains(flags, "--name "+name+" ") || w.host.flags[name][2] != w.host.flags["cp-0"][2] {
			t.Errorf("machine %s restores with %q", name, flags)
		}
	}
	if !pausedWhileStopped {
		t.Error("the cluster was not paused while its control plane was stopped")
	}
	if ours, upstream, id := w.paused(); ours || upstream || id != "" {
		t.Errorf("after the restore the cluster is paused: %t, %t, %q", ours, upstream, id)
	}
}

func TestExternalMembersAreRestoredWithoutAPIServers(t *testing.T) {
	w := newWorld(t, externalEtcd()...)
	if _, err := w.restore().Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for verb, want := range map[string][]string{
		"stop": {"cp-0 stop", "etcd-0 stop"}, "restore": {"etcd-0 restore"}, "start-api": {"cp-0 start-api"},
		"restart-kubelet": {"cp-0 restart-kubelet", "worker restart-kubelet"},
	} {
		got := w.host.verbs(verb)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", verb, got, want)
		}
	}
}

func TestNothingChangesBeforeEverythingIsVerified(t *testing.T) {
	stranger, err := age.GenerateX25519Identity()
	must(t, err)
	other, err := pki.NewAuthority("other", time.Now(), time.Hour)
	must(t, err)
	for name, tt := range map[string]struct {
		spoil func(*world, *Restore)
		want  string
	}{
		"another identity":              {func(_ *world, r *Restore) { r.Identities = []age.Identity{stranger} }, archive.ErrLocked.Error()},
		"a snapshot of another cluster": {func(w *world, _ *Restore) { w.save(other, w.snapshot) }, archive.ErrForeign.Error()},
		"a missing snapshot":            {func(_ *world, r *Restore) { r.Snapshot = "20200101T000000Z" }, "no such archive"},
		"a truncated snapshot": {func(w *world, _ *Restore) {
			must(w.t, os.Truncate(filepath.Join(w.store.Path, snapshotName+".snapshot"), 500))
		}, archive.ErrDamaged.Error()},
		"a machine that doesn't respond": {func(w *world, _ *Restore) {
			w.host.fail = func(machine, _ string) error {
				if machine == "cp-1" {
					return errLost
				}
				return nil
			}
		}, `machine "cp-1": local machine is not running; nothing was changed`},
		"an unknown machine in --without": {func(_ *world, r *Restore) { r.Skip = []string{"cp-9"} }, "has no machine cp-9"},
		"no machine left":                 {func(_ *world, r *Restore) { r.Skip = []string{"cp-0", "cp-1", "cp-2"} }, "no machine is left"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, controlPlanes(3)...)
			r := w.restore()
			tt.spoil(w, r)
			if _, err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if ours, upstream, _ := w.paused(); ours || upstream || len(w.host.calls) > 0 {
				t.Errorf("the cluster is paused (%t, %t), and machines did %v", ours, upstream, w.host.calls)
			}
		})
	}
}

// TestSignedButDamagedSnapshotsAreRejected: a signature proves where a snapshot is from, not that
// etcd's own checksum is right.
func TestSignedButDamagedSnapshotsAreRejected(t *testing.T) {
	w := newWorld(t, controlPlanes(1)...)
	r := w.restore()
	signer := &corev1.Secret{}
	must(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: r.Cluster.Namespace, Name: "dev-ca"}, signer))
	authority, err := pki.ParseAuthority(signer.Data["tls.crt"], signer.Data["tls.key"])
	must(t, err)
	w.save(authority, w.snapshot[:len(w.snapshot)-512])
	if _, err := r.Run(t.Context()); !errors.Is(err, etcd.ErrDamagedSnapshot) || len(w.host.calls) > 0 {
		t.Errorf("got %v after %v, want %v", err, w.host.calls, etcd.ErrDamagedSnapshot)
	}
}

func TestInterruptedRestoreStaysPausedAndIsRunAgainUnderItsName(t *testing.T) {
	w := newWorld(t, controlPlanes(2)...)
	w.host.fail = func(machine, verb string) error {
		if machine == "cp-1" && verb == "await-etcd" {
			return errLost
		}
		return nil
	}
	if _, err := w.restore().Run(t.Context()); !errors.Is(err, errLost) || !strings.Contains(err.Error(), "run the command again") {
		t.Fatalf("got %v, want one that says how to go on", err)
	}
	ours, upstream, id := w.paused()
	if !ours || !upstream || id == "" || len(w.host.verbs("start-api")) > 0 {
		t.Fatalf("paused: %t, %t, %q; API servers started: %v", ours, upstream, id, w.host.verbs("start-api"))
	}
	w.setID("20200101T000000Z")
	w.host.fail, w.host.calls = nil, nil
	if _, err := w.restore().Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.host.flags["cp-0"][0]; got != "20200101T000000Z" {
		t.Errorf("the second attempt is named %s, want the name of the first", got)
	}
	if ours, upstream, _ := w.paused(); ours || upstream {
		t.Error("the cluster is still paused")
	}
}

// setID renames the restore that is under way.
func (w *world) setID(id string) {
	c := &clusterv1.Cluster{}
	must(w.t, w.client.Get(w.t.Context(), w.restore().Cluster.ObjectKey, c))
	c.Annotations[restoringAnnotation] = id
	must(w.t, w.client.Update(w.t.Context(), c))
}

func TestPauseOfTheUserIsKept(t *testing.T) {
	w := newWorld(t, controlPlanes(1)...)
	c := &clusterv1.Cluster{}
	must(t, w.client.Get(t.Context(), w.restore().Cluster.ObjectKey, c))
	yes := true
	c.Spec.Paused = &yes
	must(t, w.client.Update(t.Context(), c))
	if _, err := w.restore().Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ours, upstream, id := w.paused(); ours || !upstream || id != "" {
		t.Errorf("paused: %t, %t, %q; want only what the user has paused", ours, upstream, id)
	}
}

func TestLostMachinesAreLeftOut(t *testing.T) {
	w := newWorld(t, controlPlanes(3)...)
	w.host.fail = func(machine, _ string) error {
		if machine == "cp-1" {
			return errLost
		}
		return nil
	}
	r := w.restore()
	r.Skip = []string{"cp-1"}
	if _, err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if flags := strings.Join(w.host.flags["cp-0"], " "); strings.Contains(flags, "cp-1") || !strings.Contains(flags, "cp-2") {
		t.Errorf("restored with %q", flags)
	}
}

func TestWorkersThatDontRespondAreSkipped(t *testing.T) {
	w := newWorld(t, append(controlPlanes(1), packetMachine("worker"))...)
	w.host.fail = func(machine, _ string) error {
		if machine == "worker" {
			return errLost
		}
		return nil
	}
	var told []string
	r := w.restore()
	r.Progress = func(what string) { told = append(told, what) }
	if _, err := r.Run(t.Context()); err != nil || !strings.Contains(strings.Join(told, "\n"), `machine "worker"`) {
		t.Errorf("%v; progress %q", err, told)
	}
}

func TestPodFlags(t *testing.T) {
	got, err := podFlags([]byte(`
apiVersion: v1
kind: Pod
spec:
  containers:
  - command: [etcd, --name=cp-0, --initial-cluster=cp-0=https://192.0.2.1:2380, --client-cert-auth]
    args: ["--data-dir=/var/lib/etcd"]
`))
	want := map[string]string{"name": "cp-0", "initial-cluster": "cp-0=https://192.0.2.1:2380", "data-dir": "/var/lib/etcd"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestMembersWithoutTheFlagsOfKubeadmAreRejected(t *testing.T) {
	w := newWorld(t, controlPlanes(1)...)
	r := w.restore()
	r.Host = bareHost{w.host}
	if _, err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "lacks one of --name") {
		t.Errorf("got %v, want an error about flags", err)
	}
}

func TestClassifyTellsStackedFromExternal(t *testing.T) {
	for name, tt := range map[string]struct {
		all           []infrav1.PacketMachine
		members, apis string
	}{
		"stacked":  {append(controlPlanes(2), packetMachine("worker")), "cp-0 cp-1", "cp-0 cp-1"},
		"external": {externalEtcd(), "etcd-0", "cp-0"},
	} {
		var members, apis []string
		for _, m := range classify(tt.all, sets.New[string]()) {
			if m.member {
				members = append(members, m.name)
			}
			if m.server {
				apis = append(apis, m.name)
			}
		}
		if strings.Join(members, " ") != tt.members || strings.Join(apis, " ") != tt.apis {
			t.Errorf("%s: members %v, API servers %v", name, members, apis)
		}
	}
}
