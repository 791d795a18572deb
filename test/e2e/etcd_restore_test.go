package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
)

// testEtcdDrill saves etcd, loses all of it, and restores it.
func testEtcdDrill(t *testing.T, c *workload) {
	direct, err := c.Direct(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := &drill{workload: c, api: direct, dir: filepath.Join(t.TempDir(), "snapshots")}
	d.maintain()
	d.create("before")
	c.must("etcd", "snapshot", c.Name, "--to", d.dir)
	d.create("after")
	if err := direct.CoreV1().ConfigMaps("default").Delete(t.Context(), "before", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	d.checkRetention()
	d.checkSchedule()
	last := d.revision()
	d.loseEtcd()
	d.checkRejected()
	start := time.Now()
	c.must("etcd", "restore", c.Name, "--from", d.dir, "--snapshot", d.first(), "--yes")
	t.Logf("restored in %s", time.Since(start).Round(time.Second))
	d.checkRestored(last)
	c.awaitAvailable()
}

// drill is a cluster whose etcd is lost and restored.
type drill struct {
	*workload

	api kubernetes.Interface
	dir string
}

func (d *drill) create(name string) {
	d.t.Helper()
	if _, err := d.api.CoreV1().ConfigMaps("default").Create(d.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

// revision returns the newest version of objects that a client has seen.
func (d *drill) revision() string {
	d.t.Helper()
	list, err := d.api.CoreV1().ConfigMaps("default").List(d.t.Context(), metav1.ListOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	return list.ResourceVersion
}

// maintain lists and defragments the members.
func (d *drill) maintain() {
	d.t.Helper()
	var members []struct{ Name, Role, Health string }
	if err := json.Unmarshal([]byte(d.must("etcd", "members", d.Name, "-o", "json").stdout), &members); err != nil {
		d.t.Fatal(err)
	}
	if len(members) != 1 || members[0].Role != "leader" || members[0].Health != "healthy" {
		d.t.Errorf("members %+v", members)
	}
	if told := d.must("etcd", "defrag", d.Name).stderr; !strings.Contains(told, "Defragmented "+members[0].Name) {
		d.t.Errorf("defrag says %q", told)
	}
}

// first returns the oldest snapshot in the directory.
func (d *drill) first() string {
	d.t.Helper()
	var all []struct{ Name string }
	if err := json.Unmarshal([]byte(d.must("etcd", "snapshots", d.Name, "--from", d.dir, "-o", "json").stdout), &all); err != nil {
		d.t.Fatal(err)
	}
	return all[len(all)-1].Name
}

// checkRetention saves to the registry of the plane twice, where one snapshot is kept.
func (d *drill) checkRetention() {
	d.t.Helper()
	var registry struct{ URL string }
	if err := json.Unmarshal([]byte(d.must("registry", "status", "-o", "json").stdout), &registry); err != nil {
		d.t.Fatal(err)
	}
	at := strings.Replace(registry.URL, "https://", "oci://", 1) + "/snapshots"
	d.must("etcd", "snapshot", d.Name, "--to", at)
	time.Sleep(time.Second) // names are times
	if out := d.must("etcd", "snapshot", d.Name, "--to", at, "--keep", "1").stdout; !strings.Contains(out, "Deleted "+at) {
		d.t.Errorf("the second snapshot says %q", out)
	}
	if lines := strings.Split(strings.TrimSpace(d.must("etcd", "snapshots", d.Name, "--from", at).stdout), "\n"); len(lines) != 2 {
		d.t.Errorf("the registry has %q, want one snapshot", lines)
	}
}

// checkSchedule lets the manager save a snapshot, as if its time had come.
func (d *drill) checkSchedule() {
	d.t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		d.t.Fatal(err)
	}
	dir, namespace := d.t.TempDir(), d.Object(d.t.Context()).Namespace
	manifest := filepath.Join(dir, "schedule.yaml")
	text := fmt.Sprintf("{apiVersion: drover.dev/v1alpha1, kind: EtcdSnapshotSchedule, metadata: {name: drill, namespace: %s}, spec: {clusterName: %s, schedule: '@daily', location: %s, recipients: [%s]}}\n",
		namespace, d.Name, dir, identity.Recipient())
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.must("kubectl", "apply", "-f", manifest)
	d.must("kubectl", "patch", "etcdsnapshotschedule", "drill", "-n", namespace, "--subresource=status", "--type=merge", "-p", `{"status":{"lastAttemptTime":"2026-01-01T00:00:00Z"}}`)
	d.must("kubectl", "patch", "etcdsnapshotschedule", "drill", "-n", namespace, "--type=merge", "-p", `{"spec":{"keep":1}}`)
	d.await("the manager saves a snapshot", func() bool {
		return strings.Contains(d.must("kubectl", "get", "etcdsnapshotschedule", "drill", "-n", namespace, "-o", "jsonpath={.status.conditions[*].reason}").stdout, "Saved")
	})
	if lines := strings.Split(strings.TrimSpace(d.must("etcd", "snapshots", d.Name, "--from", dir).stdout), "\n"); len(lines) != 2 {
		d.t.Errorf("the directory has %q, want one snapshot", lines)
	}
	d.must("kubectl", "delete", "-f", manifest)
}

// loseEtcd deletes the data of all members.
func (d *drill) loseEtcd() {
	d.t.Helper()
	host, err := admin.Open(metal.Home{Dir: d.metalHome()})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, m := range d.Machines(d.t.Context()) {
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; !ok {
			continue
		}
		_, device, _ := strings.Cut(m.Spec.ProviderID, "://")
		if out, err := host.Exec(d.t.Context(), device, nil, "bash", "-c", "rm -rf /var/lib/etcd/member && pkill -KILL -x etcd"); err != nil {
			d.t.Fatalf("%v: %s", err, out)
		}
	}
}

// checkRejected tries what must fail before anything changes.
func (d *drill) checkRejected() {
	d.t.Helper()
	wrong := filepath.Join(d.t.TempDir(), "passphrase")
	if err := os.WriteFile(wrong, []byte("wrong\n"), 0o600); err != nil {
		d.t.Fatal(err)
	}
	r := d.drover("etcd", "restore", d.Name, "--from", d.dir, "--yes", "--passphrase-file", wrong)
	if r.code != 1 || !strings.Contains(r.stderr, "wrong passphrase or identity; nothing was changed") {
		d.t.Errorf("with a wrong passphrase: %d %s", r.code, r.stderr)
	}
	if d.Object(d.t.Context()).Spec.Paused != nil {
		d.t.Error("the cluster is paused")
	}
}

// checkRestored checks that the cluster is as it was when the snapshot was saved, and that its
// revisions go on: watchers must not take old versions for new ones.
func (d *drill) checkRestored(last string) {
	d.t.Helper()
	maps := d.api.CoreV1().ConfigMaps("default")
	if _, err := maps.Get(d.t.Context(), "before", metav1.GetOptions{}); err != nil {
		d.t.Errorf("an object that the snapshot has is missing: %v", err)
	}
	if _, err := maps.Get(d.t.Context(), "after", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		d.t.Errorf("an object that is newer than the snapshot: %v", err)
	}
	if now := d.revision(); len(now) <= len(last) {
		d.t.Errorf("the version is %s after %s, want one far ahead", now, last)
	}
	_, err := maps.Watch(d.t.Context(), metav1.ListOptions{ResourceVersion: last})
	if err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		d.t.Errorf("continuing a watch: %v", err)
	}
	if d.Object(d.t.Context()).Spec.Paused != nil {
		d.t.Error("the cluster is still paused")
	}
	d.await("all nodes are ready", func() bool {
		for _, n := range d.Nodes(d.t.Context()) {
			for _, condition := range n.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
					return false
				}
			}
		}
		return true
	})
}
