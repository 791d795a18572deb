package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/admin"
	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/tags"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/test/killtest"
)

// recoverPhases are the phases of a recovery.
var recoverPhases = []string{
	"SetupAndValidate", "CreateBootstrapCluster", "CreateWorkloadCluster", "MoveManagementCluster", "InstallEKSAComponents",
	"RestoreClusters", "TakeOverClusters", "InstallAddOns", "DeleteBootstrap",
}

// backups is what the program prints about scheduled backups.
type backups struct {
	Every      time.Duration
	Location   string
	Recipients []string
	Status     struct {
		Last    struct{ Name string }
		Kept    int
		Failure string
	}
}

func (m *managed) backups(args ...string) backups {
	m.t.Helper()
	var b backups
	out := m.must(append([]string{"backup", "schedule", "-o", "json", "-k", m.file}, args...)...).stdout
	if err := json.Unmarshal([]byte(out), &b); err != nil {
		m.t.Fatal(err)
	}
	return b
}

// awaitBackup waits until the manager has made a backup that is at least as new as the name.
func (m *managed) awaitBackup(name string) {
	m.t.Helper()
	last := backups{}
	defer func() {
		if m.t.Failed() {
			m.t.Logf("%+v", last)
		}
	}()
	m.await("there is a backup of "+name+" or later", func() bool {
		last = m.backups()
		return last.Status.Last.Name >= name && last.Status.Failure == ""
	})
}

// testScheduledBackups waits for a backup that has all clusters. Nobody but the administrator can
// read it.
func testScheduledBackups(t *testing.T, m *managed) {
	if b := m.backups(); b.Every != time.Hour || b.Location != "metal" || len(b.Recipients) != 1 {
		t.Errorf("by default, backups are %+v", b)
	}
	m.awaitBackup("2")
	now := storage.Name(time.Now())
	m.backups("--interval", "1m")
	m.awaitBackup(now)
	m.backups("--interval", "1h")

	kept, err := filepath.Glob(filepath.Join(m.metalHome(), "backups", m.project, "chief", "*.backup"))
	if err != nil || len(kept) < 2 {
		t.Fatalf("%v: there are backups %v", err, kept)
	}
	for _, file := range append(kept, filepath.Join(m.dir, "chief", "chief-recovery.key")) {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	for _, file := range kept {
		if data, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(data), "age-encryption.org/v1\n") {
			t.Errorf("%s is not encrypted: %v", file, err)
		}
	}
}

// testRecovery powers the management cluster off. Its recovery is killed in phases that change
// something, while the other clusters are asked all the time.
func testRecovery(t *testing.T, m *managed) {
	flock, herd := m.connect(filepath.Join(m.dir, "flock", "flock-eks-a-cluster.kubeconfig")), m.connect(m.kubeconfigOf("herd"))
	restarts := func() map[string]map[string]int32 {
		return map[string]map[string]int32{"flock": containers(t, flock), "herd": containers(t, herd)}
	}
	before, ran := m.machinesOf("flock", "herd"), restarts()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reads := sending(ctx, 200*time.Millisecond, reading(flock))

	m.rejects("still answers at", "recover", "chief")
	m.powerOff("chief")
	m.rejects("may still act on its clusters", "recover", "chief")

	began := time.Now()
	said := killtest.Everywhere(t, killtest.Command{
		New: func() *exec.Cmd {
			cmd := m.command("recover", "chief", "--delete-old")
			cmd.Dir = m.dir
			return cmd
		},
		Record: phase.Record{Dir: filepath.Join(m.dir, "chief", "generated"), Cluster: "chief"},
		Phases: []string{"CreateWorkloadCluster", "RestoreClusters", "TakeOverClusters"},
		Inside: map[string]string{"CreateWorkloadCluster": " is not ", "RestoreClusters": "Restoring cluster herd"},
	})
	t.Logf("the recovery, killed in three phases, took %s:\n%s", time.Since(began).Round(100*time.Millisecond), said)
	if got := phases(result{stderr: said}); !slices.Equal(got, recoverPhases) {
		t.Errorf("the phases are %v, want %v", got, recoverPhases)
	}
	m.noBootstrap("chief")

	stop()
	reads.check(t, "reads of flock", 10)
	if d := cmp.Diff(before, m.machinesOf("flock", "herd")); d != "" {
		t.Errorf("machines were touched (-before +after):\n%s", d)
	}
	if d := cmp.Diff(ran, restarts()); d != "" {
		t.Errorf("containers were restarted (-before +after):\n%s", d)
	}
	m.awaitBackup(storage.Name(began))
}

// testRecoveredClusters checks that the new management cluster has what the lost one had, and
// changes and deletes the other clusters with it.
func testRecoveredClusters(t *testing.T, m *managed) {
	before := m.machinesOf("flock")
	// Its namespace may still use machines of this host.
	m.must("create", "user", "creator", "-n", team, "-o", m.creator, "-k", m.file)
	scaled := file(t, fmt.Sprintf(flockSpec, workersText(2)))
	m.mustHere("upgrade", "cluster", "-f", scaled, "-k", m.creator)
	after := m.machinesOf("flock")
	if len(after) != 3 {
		t.Errorf("flock has machines %v, want 3", after)
	}
	for id, was := range before {
		if after[id] != was {
			t.Errorf("machine %s is %q, want %q", id, after[id], was)
		}
	}
	m.checkAudit("Created", "Scaled")
	m.await("the package runs again", func() bool {
		return strings.Contains(m.drover("kubectl", "--kubeconfig", m.file, "get", "--raw", "/api/v1/namespaces/default/services/http:my:80/proxy/").stdout, "After")
	})

	m.mustHere("delete", "cluster", "-f", scaled, "-k", m.creator, "--yes")
	m.kubectl("delete", "clusters.cluster.x-k8s.io", "herd", "--timeout=5m")
	if left, own := m.devices(), m.machinesOf("chief"); len(left) != 1 || len(own) != 1 {
		t.Errorf("there are devices %v, want that of the management cluster", left)
	}
}

// rejects runs a command that must fail with a message.
func (m *managed) rejects(want string, args ...string) {
	m.t.Helper()
	if r := m.here(args...); r.code == 0 || !strings.Contains(r.stderr, want) {
		m.t.Fatalf("drover %s ended with %d, want %q:\n%s", strings.Join(args, " "), r.code, want, r.stderr)
	}
}

// kubeconfigOf writes the kubeconfig of a cluster to a file.
func (m *managed) kubeconfigOf(cluster string) string {
	m.t.Helper()
	return file(m.t, m.must("kubeconfig", cluster, "--kubeconfig", m.file).stdout)
}

func (m *managed) connect(kubeconfig string) kubernetes.Interface {
	m.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		m.t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		m.t.Fatal(err)
	}
	return c
}

// host returns a client of the metal service, and the devices of clusters.
func (m *managed) host(clusters ...string) (*admin.Client, []api.Device) {
	m.t.Helper()
	host, err := admin.Open(metal.Home{Dir: m.metalHome()})
	if err != nil {
		m.t.Fatal(err)
	}
	all, err := host.Devices(m.t.Context(), nil)
	if err != nil {
		m.t.Fatal(err)
	}
	return host, slices.DeleteFunc(all, func(d api.Device) bool { return !slices.Contains(clusters, tags.ParseMachine(d.Tags).Cluster) })
}

// machinesOf describes each machine of clusters by its ID, with what changes when it is modified.
func (m *managed) machinesOf(clusters ...string) map[string]string {
	m.t.Helper()
	_, all := m.host(clusters...)
	out := map[string]string{}
	for _, d := range all {
		out[d.ID] = fmt.Sprintf("%s, %s, created %v, changed %v, tags %v", d.Hostname, d.State, d.CreatedAt, d.UpdatedAt, d.Tags)
	}
	return out
}

// powerOff powers the machines of a cluster off.
func (m *managed) powerOff(cluster string) {
	m.t.Helper()
	host, all := m.host(cluster)
	for _, d := range all {
		if err := host.Do(m.t.Context(), http.MethodPost, "/devices/"+d.ID+"/actions", map[string]string{"type": "power_off"}, nil); err != nil {
			m.t.Fatal(err)
		}
	}
	m.await("the machines of "+cluster+" are off", func() bool {
		_, all := m.host(cluster)
		return !slices.ContainsFunc(all, func(d api.Device) bool { return d.State != metal.StateInactive })
	})
}

// checkAudit checks what is on record about the creator's cluster.
func (m *managed) checkAudit(want ...string) {
	m.t.Helper()
	var records struct {
		Items []struct {
			Spec struct{ Action, User string }
		}
	}
	out := m.must("audit", "flock", "-k", m.file, "-o", "json").stdout
	if err := json.Unmarshal([]byte(out), &records); err != nil {
		m.t.Fatal(err)
	}
	var did []string
	for _, r := range records.Items {
		if r.Spec.User == "system:serviceaccount:"+team+":creator" {
			did = append(did, r.Spec.Action)
		}
	}
	if !slices.Equal(did, want) {
		m.t.Errorf("on record is %v, want %v:\n%s", did, want, out)
	}
}
