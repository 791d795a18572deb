package plane

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/base/process"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/metal/service"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/plane"
)

func TestStatusOfAStoppedPlane(t *testing.T) {
	for phase, want := range map[string]string{
		plane.PhaseStopped: "Plane       Stopped; start it with `drover up`\n",
		plane.PhaseReady:   "Plane       Killed: the supervisor ended without a shutdown", // the lock is free
	} {
		t.Run(phase, func(t *testing.T) {
			c := newTerminal(t)
			c.stopped(phase)
			got := c.run("status")
			if got.code != ui.ExitNotRunning || got.err != "" || !strings.HasPrefix(got.out, want) {
				t.Errorf("code %d:\n%s%s", got.code, got.out, got.err)
			}
			if !strings.Contains(got.out, "etcd        Stopped") {
				t.Errorf("etcd is not shown as stopped:\n%s", got.out)
			}
		})
	}
}

func TestStatusAsJSON(t *testing.T) {
	c := newTerminal(t)
	c.stopped(plane.PhaseStopped)
	got := c.run("status", "-o", "json")
	var report map[string]any
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatalf("%v:\n%s", err, got.out)
	}
	if got.code != ui.ExitNotRunning || report["phase"] != "Stopped" || report["drover"] != "v0.1.0" || report["kubeconfig"] != c.home+"/kubeconfig" {
		t.Errorf("code %d:\n%s", got.code, got.out)
	}
}

func TestPhaseLine(t *testing.T) {
	for phase, want := range map[string]string{
		plane.PhaseReady:    "Ready",
		plane.PhaseStarting: "Starting",
		plane.PhaseStopping: "Stopping",
		plane.PhaseDegraded: "Degraded: some components are not ready",
		plane.PhaseStopped:  "Stopped; start it with `drover up`",
		plane.PhaseKilled:   "Killed: the supervisor ended without a shutdown; no data is lost, start it with `drover up`",
	} {
		if got := (&statusReport{State: plane.State{Phase: phase}}).phaseLine(); got != want {
			t.Errorf("%s is shown as %q, want %q", phase, got, want)
		}
	}
}

func TestComponentRow(t *testing.T) {
	started := time.Now().Add(-90 * time.Second)
	for name, tt := range map[string]struct {
		status plane.ComponentStatus
		want   []string
	}{
		"a process": {
			plane.ComponentStatus{Name: "etcd", State: plane.Ready, PID: 7, MemoryBytes: 40 << 20, Started: started, Restarts: 1, Version: "3.6.8"},
			[]string{"etcd", "Ready", "7", "40 MiB", "1m30s", "1", "3.6.8"},
		},
		"a part of the supervisor": {
			plane.ComponentStatus{Name: "registry", State: plane.Ready, Started: started, Version: "v0.1.0"},
			[]string{"registry", "Ready", "-", "-", "1m30s", "0", "v0.1.0"},
		},
		"a component that waits to be started again": {
			plane.ComponentStatus{Name: "manager", State: plane.Backoff, Restarts: 3, Started: started, Version: "v0.1.0"},
			[]string{"manager", "Backoff", "-", "-", "-", "3", "v0.1.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, componentRow(tt.status)); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusTable(t *testing.T) {
	machines := 3
	r := &statusReport{
		State: plane.State{
			Phase: plane.PhaseDegraded, API: "https://127.0.0.1:6443", Registry: "https://127.0.0.1:5000", GitWebhook: "https://127.0.0.1:20001/git/flux-system",
			Drover: "v0.1.0", Kubernetes: "v1.36.3", ClusterAPI: "v1.14.2", PacketAPI: "https://packet.example/metal/v1",
			Components: []plane.ComponentStatus{{
				Name: "manager", State: plane.CrashLoop, Restarts: 5, LastExit: "exit status 1", Log: "/h/logs/manager.log", LogTail: []string{"boom", "bang"},
			}},
		},
		MemoryBytes: 300 << 20, Kubeconfig: "/h/kubeconfig",
		Metal: &service.Status{Running: true, Driver: "local", URL: "https://127.0.0.1:9000/metal/v1", Machines: &machines, MemoryBytes: 20 << 20},
		Clusters: []inspect.CAPICluster{{
			Namespace: "default", Name: "first", Phase: "Provisioning", Available: "False",
			Conditions: []metav1.Condition{{Type: "InfrastructureReady", Status: metav1.ConditionFalse, Message: "no machine yet"}},
		}},
		Git: []inspect.Link{{Kind: "GitChange", Namespace: "team-a", Name: "one-x", Condition: "Committed", Message: "The branch is protected"}},
	}
	var out strings.Builder
	if err := r.table(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Plane       Degraded: some components are not ready\n",
		"API         https://127.0.0.1:6443\n",
		"Registry    https://127.0.0.1:5000\n",
		"Git webhook https://127.0.0.1:20001/git/flux-system\n",
		"Versions    Drover v0.1.0, Kubernetes v1.36.3, Cluster API v1.14.2\n",
		"Memory      300 MiB in total\n",
		"Metal       Running, driver local, 3 machines, 20 MiB\n",
		"Packet API  https://packet.example/metal/v1\n",
		"manager exited 5 times, last with \"exit status 1\". Last lines of /h/logs/manager.log:\n  boom\n  bang\n",
		"default     first     Provisioning   False       InfrastructureReady: no machine yet",
		"NAMESPACE   WAITING FOR GIT\nteam-a      GitChange one-x is not Committed: The branch is protected\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in:\n%s", want, &out)
		}
	}
}

func TestStatusOmitsTheLocalPacketAPI(t *testing.T) {
	const url = "https://127.0.0.1:9000/metal/v1"
	r := &statusReport{State: plane.State{PacketAPI: url}, Metal: &service.Status{Driver: "memory", URL: url}}
	var out strings.Builder
	r.machines(&out)
	if strings.Contains(out.String(), "Packet API") || !strings.Contains(out.String(), "Metal       Stopped, driver memory") {
		t.Errorf("got:\n%s", &out)
	}
}

func TestStatusExplainsUnknownClusters(t *testing.T) {
	var out strings.Builder
	if err := (&statusReport{ClustersError: "connection refused"}).clusters(&out); err != nil || out.String() != "\nFailed to list clusters: connection refused\n" {
		t.Errorf("%v:\n%s", err, &out)
	}
}

func TestMemoryIsSummedOverComponents(t *testing.T) {
	r := &statusReport{State: plane.State{Components: []plane.ComponentStatus{{MemoryBytes: 1}, {MemoryBytes: 2}}}}
	r.addMemory()
	if r.MemoryBytes != 3 {
		t.Errorf("got %d bytes", r.MemoryBytes)
	}
	r = &statusReport{State: plane.State{Supervisor: process.Identify(os.Getpid())}}
	r.addMemory()
	if r.MemoryBytes == 0 {
		t.Error("the supervisor counts nothing")
	}
}
