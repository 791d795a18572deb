package e2e

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/test/artifacttest"
)

const clusterManifest = `apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: first, namespace: default}
spec:
  clusterNetwork: {pods: {cidrBlocks: [192.168.0.0/16]}}
  controlPlaneEndpoint: {host: 127.0.0.1, port: 6443}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: PacketCluster, name: first}
`

// TestPlaneLifecycle follows one plane from its first start to its removal.
func TestPlaneLifecycle(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	first := p.must("up")
	if !strings.Contains(first.stderr, "export KUBECONFIG="+p.home) {
		t.Errorf("up does not say what to do next:\n%s", first.stderr)
	}
	p.follow(
		step{"a second up changes nothing and says so", testSecondUp},
		step{"files are private", testPrivateFiles},
		step{"strangers learn about health and nothing else", testAnonymous},
		step{"status shows components and clusters", testStatus},
		step{"the registry has Drover's charts and takes others", testRegistry},
		step{"Secrets are encrypted, also after a rotation", testEncryption},
		step{"down and up keep objects", testDownUp},
		step{"SIGKILL of everything keeps objects", testKillAll},
		step{"each component comes back", testKillEach},
		step{"a crash loop is shown with the log", testCrashLoop},
		step{"the audit log knows who did what", testAudit},
		step{"the registry has kept what it took", testRegistryKept},
		step{"a backup is restored beside the plane", testRestore},
		step{"a lost home is restored from a scheduled backup", testLostHome},
		step{"purge removes everything", testPurge},
	)
}

func testSecondUp(t *testing.T, p *plane) {
	before := p.status()
	again := p.must("up")
	if !strings.Contains(again.stderr, "already running at "+before.API) {
		t.Errorf("a second up says:\n%s", again.stderr)
	}
	if after := p.status(); fmt.Sprint(after.pids()) != fmt.Sprint(before.pids()) {
		t.Errorf("processes changed from %v to %v", before.pids(), after.pids())
	}
	p.refused("run `drover down` before you change its address", "up", "--api-port", "1234")
}

func testPrivateFiles(t *testing.T, p *plane) {
	err := filepath.WalkDir(p.home, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // etcd may remove files concurrently
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func testAnonymous(t *testing.T, p *plane) {
	nobody := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for path, want := range map[string]int{
		"/readyz": http.StatusOK, "/livez": http.StatusOK,
		"/api": http.StatusUnauthorized, "/version": http.StatusUnauthorized, "/metrics": http.StatusUnauthorized,
		"/api/v1/namespaces/kube-public/configmaps": http.StatusUnauthorized,
	} {
		res, err := nobody.Get(p.status().API + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s answers %d to a stranger, want %d", path, res.StatusCode, want)
		}
	}
}

func testStatus(t *testing.T, p *plane) {
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, []byte(clusterManifest), 0o600); err != nil {
		t.Fatal(err)
	}
	p.must("kubectl", "apply", "-f", file)
	p.await("the cluster has conditions", func() bool {
		s := p.status()
		return len(s.Clusters) == 1 && len(s.Clusters[0].Conditions) > 3
	})
	s := p.status()
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "manager"} {
		if c := s.component(name); c.State != "Ready" || c.PID == 0 || c.MemoryBytes == 0 || c.Version == "" {
			t.Errorf("status of %s = %+v", name, c)
		}
	}
	table := p.must("status").stdout
	for _, want := range []string{"kube-apiserver", "MiB in total", "first", "InfrastructureReady: "} {
		if !strings.Contains(table, want) {
			t.Errorf("status does not show %q:\n%s", want, table)
		}
	}
}

func testRegistry(t *testing.T, p *plane) {
	if c := p.status().component("registry"); c.State != "Ready" || c.Version == "" {
		t.Errorf("status of the registry = %+v", c)
	}
	if list := p.must("registry", "list").stdout; !strings.Contains(list, "charts/cni") {
		t.Errorf("Drover's own chart is not there:\n%s", list)
	}
	file := filepath.Join(t.TempDir(), "hello.tgz")
	if err := os.WriteFile(file, artifacttest.Chart(t, "hello", "1.0.0", nil), 0o600); err != nil {
		t.Fatal(err)
	}
	pushed := p.must("registry", "push", file).stdout
	if !strings.Contains(pushed, "/charts/hello:1.0.0\nsha256:") {
		t.Errorf("push says:\n%s", pushed)
	}
	if !strings.Contains(p.must("registry", "status").stdout, "registry-password") {
		t.Error("status does not say how to log in")
	}
	p.refused("run `drover down` before you change its address", "up", "--registry-port", "1234")
}

func testRegistryKept(t *testing.T, p *plane) {
	if list := p.must("registry", "list").stdout; !strings.Contains(list, "charts/hello") {
		t.Errorf("what was pushed is gone:\n%s", list)
	}
	if done := p.must("registry", "gc", "--older-than", "0s").stdout; !strings.Contains(done, "Deleted 0 unreferenced") {
		t.Errorf("gc of what is in use says:\n%s", done)
	}
}

// keep creates a Secret, runs change, and checks that the Secret is unchanged.
func keep(t *testing.T, p *plane, name string, change func()) {
	t.Helper()
	secrets := p.kubernetes().CoreV1().Secrets("default")
	made, err := secrets.Create(ctx(t), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"word": name},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change()
	found, err := p.kubernetes().CoreV1().Secrets("default").Get(ctx(t), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if found.UID != made.UID || string(found.Data["word"]) != name {
		t.Errorf("secret %s is not what it was", name)
	}
}

func testDownUp(t *testing.T, p *plane) {
	keep(t, p, "calm", func() {
		api := p.status().API
		p.must("down")
		if r := p.drover("status"); r.code != 3 || !strings.Contains(r.stdout, "Stopped") {
			t.Errorf("status of a stopped plane ends with %d:\n%s", r.code, r.stdout)
		}
		if left := processes(p.home); len(left) > 0 {
			t.Errorf("processes %v are left after down", left)
		}
		if r := p.must("down"); !strings.Contains(r.stderr, "was not running") {
			t.Errorf("a second down says:\n%s", r.stderr)
		}
		p.must("up")
		if now := p.status().API; now != api {
			t.Errorf("the API moved from %s to %s", api, now)
		}
	})
}

func testKillAll(t *testing.T, p *plane) {
	keep(t, p, "storm", func() {
		kill(t, p.status().pids()...)
		p.await("the supervisor is gone", func() bool { return p.status().Phase == "Killed" })
		if r := p.drover("status"); r.code != 3 || !strings.Contains(r.stdout, "no data is lost") {
			t.Errorf("status of a killed plane ends with %d:\n%s", r.code, r.stdout)
		}
		p.must("up")
	})
	keep(t, p, "beheaded", func() {
		// Only the supervisor: its children must not outlive it.
		kill(t, p.status().Supervisor.PID)
		p.must("up")
	})
	if got, want := len(processes(p.home)), 5; got != want {
		t.Errorf("%d processes run on the home, want %d", got, want)
	}
}

func testKillEach(t *testing.T, p *plane) {
	for _, name := range []string{"manager", "kube-controller-manager", "kube-apiserver", "etcd"} {
		before := p.status().component(name)
		kill(t, before.PID)
		p.await(name+" serves again", func() bool {
			s := p.status()
			c := s.component(name)
			return s.Phase == "Ready" && c.PID != before.PID && c.Restarts > before.Restarts
		})
	}
}

func testCrashLoop(t *testing.T, p *plane) {
	kubeconfig := filepath.Join(p.home, "run", "manager.kubeconfig")
	good, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kubeconfig, []byte("{garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	kill(t, p.status().component("manager").PID)
	p.await("the manager is in a crash loop", func() bool { return p.status().component("manager").State == "CrashLoop" })
	s := p.status()
	if s.Phase != "Degraded" || len(s.component("manager").LogTail) == 0 {
		t.Errorf("phase %s, log tail %q", s.Phase, s.component("manager").LogTail)
	}
	if table := p.must("status").stdout; !strings.Contains(table, "manager exited") || !strings.Contains(table, "CrashLoop") {
		t.Errorf("status does not show the crash loop:\n%s", table)
	}
	if err := os.WriteFile(kubeconfig, good, 0o600); err != nil {
		t.Fatal(err)
	}
	p.awaitReady()
}

func testAudit(t *testing.T, p *plane) {
	data, err := os.ReadFile(filepath.Join(p.home, "logs", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	log := string(data)
	if !strings.Contains(log, `"username":"drover:admin"`) || !strings.Contains(log, `"name":"calm"`) {
		t.Error("the audit log does not tell who made which secret")
	}
	if strings.Contains(log, "Y2FsbQ==") || strings.Contains(log, "stringData") {
		t.Error("the audit log holds the content of a secret")
	}
}

func testPurge(t *testing.T, p *plane) {
	p.must("down", "--purge")
	if _, err := os.Stat(p.home); !os.IsNotExist(err) {
		t.Errorf("the home is still there: %v", err)
	}
	if left := processes(p.home); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if r := p.drover("status"); r.code != 3 || !strings.Contains(r.stderr, "drover up") {
		t.Errorf("status of nothing ends with %d:\n%s", r.code, r.stderr)
	}
}
