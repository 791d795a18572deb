package e2e

import (
	"encoding/json"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver/local"
	"github.com/drover-dev/drover/internal/test/clustertest"
)

// fleet is a plane with its own local machines.
type fleet struct {
	*plane
	id      string // part of the names of the machines' kernel objects
	project string
}

// newFleet starts a plane with local machines, which are removed when t ends.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	if os.Geteuid() != 0 || testing.Short() {
		t.Skip("local machines need root, and minutes")
	}
	f := &fleet{plane: newPlane(t)}
	f.must("up", "--metal", "local")
	f.name()
	if !interfaces(t)["drv"+f.id] {
		t.Fatalf("there is no bridge drv%s", f.id)
	}
	f.project = f.defaultProject()
	t.Cleanup(func() { f.checkPurge(t) })
	return f
}

// name returns the name in the machines' kernel objects.
func (f *fleet) name() { f.id = local.Name(filepath.Join(f.metalHome(), "driver-local")) }

// checkPurge removes the machines and checks that the kernel has nothing left of them.
func (f *fleet) checkPurge(t *testing.T) {
	if t.Failed() {
		f.showMachines(t)
	}
	f.must("metal", "purge", "--yes")
	// The kernel takes a moment to end killed processes.
	for deadline := time.Now().Add(5 * time.Second); len(f.leftovers()["processes"]) > 0 && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	for what, left := range f.leftovers() {
		if len(left) > 0 {
			t.Errorf("%s outlive metal: %v", what, left)
		}
	}
}

// showMachines prints the progress of machines.
func (f *fleet) showMachines(t *testing.T) {
	t.Log(f.drover("kubectl", "get", "clusters.cluster.x-k8s.io,machines,packetmachines", "-A").stdout)
	for _, name := range f.devices() {
		lines := strings.Split(strings.TrimSpace(f.drover("machine", "logs", name).stdout), "\n")
		t.Logf("the end of what %s said:\n%s", name, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
}

func (f *fleet) defaultProject() string {
	f.t.Helper()
	var projects []struct{ ID, Name string }
	if err := json.Unmarshal([]byte(f.must("metal", "project", "list", "-o", "json").stdout), &projects); err != nil {
		f.t.Fatal(err)
	}
	for _, p := range projects {
		if p.Name == "default" {
			return p.ID
		}
	}
	f.t.Fatalf("metal has projects %v and no default one", projects)
	return ""
}

// apply renders a template as clusterctl does, and applies it.
func (f *fleet) apply(template string, variables map[string]string) *workload {
	f.t.Helper()
	variables["PROJECT_ID"] = f.project
	out, err := clustertest.Render(template, variables)
	if err != nil {
		f.t.Fatal(err)
	}
	manifest := filepath.Join(f.t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(manifest, out, 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.must("kubectl", "apply", "-f", manifest)
	c, err := clustertest.NewClient(f.config())
	if err != nil {
		f.t.Fatal(err)
	}
	return &workload{fleet: f, Cluster: &clustertest.Cluster{Client: c, Name: variables["CLUSTER_NAME"]}}
}

// devices returns the devices of the metal service, by name.
func (f *fleet) devices() []string {
	f.t.Helper()
	var devices []struct{ Hostname string }
	if err := json.Unmarshal([]byte(f.must("machine", "list", "-o", "json").stdout), &devices); err != nil {
		f.t.Fatal(err)
	}
	out := make([]string, 0, len(devices))
	for _, d := range devices {
		out = append(out, d.Hostname)
	}
	return out
}

// leftovers returns the machines' kernel objects, by kind.
func (f *fleet) leftovers() map[string][]string {
	out := map[string][]string{"processes": nil}
	for name := range interfaces(f.t) {
		if strings.Contains(name, f.id) {
			out["interfaces"] = append(out["interfaces"], name)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, f.metalHome()) {
			out["mounts"] = append(out["mounts"], line)
		}
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, f.id) {
			out["cgroups"] = append(out["cgroups"], path)
		}
		return nil
	})
	groups, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, path := range groups {
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), f.id) {
			out["processes"] = append(out["processes"], filepath.Dir(path))
		}
	}
	return out
}

func interfaces(t *testing.T) map[string]bool {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, i := range all {
		out[i.Name] = true
	}
	return out
}
