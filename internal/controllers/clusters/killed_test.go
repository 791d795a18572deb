package clusters_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/cli"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
	"github.com/drover-dev/drover/internal/test/killtest"
	"github.com/drover-dev/drover/internal/test/managertest"
)

// asDrover makes the test binary behave as the command line.
const asDrover = "DROVER_TEST_AS_DROVER"

// runAsDrover runs a command if the process was started as drover.
func runAsDrover() {
	if os.Getenv(asDrover) == "" {
		return
	}
	os.Exit(cli.Main())
}

// TestKilledCommandsResume kills the commands for workload clusters in each of their phases. Each
// step takes effect once.
func TestKilledCommandsResume(t *testing.T) {
	w := newWorld(t, managertest.Command)
	dir := t.TempDir()
	file := filepath.Join(dir, "kid.yaml")
	spec := strings.ReplaceAll(named("kid"), "{name: kid}", "{name: kid, namespace: "+w.ns+"}")
	write := func(text string) { w.must(os.WriteFile(file, []byte(text), 0o600)) }
	run := func(verb lifecycle.Verb, phases ...string) {
		t.Helper()
		killtest.Everywhere(t, killtest.Command{
			New: func() *exec.Cmd {
				cmd := exec.Command(os.Args[0], string(verb), "cluster", "-f", file, "--kubeconfig", plane.server.Kubeconfig(t))
				if verb == lifecycle.Delete {
					cmd.Args = append(cmd.Args, "--yes")
				}
				cmd.Env, cmd.Dir = append(os.Environ(), asDrover+"=1", "DROVER_HOME="+filepath.Join(dir, "home")), dir
				return cmd
			},
			Record: lifecycle.Files{Dir: dir, Cluster: "kid"}.Record(), Phases: phases,
			Inside: map[string]string{lifecycle.CreateWorkloadCluster: " is not ", lifecycle.UpgradeWorkloadCluster: " is not ", lifecycle.DeleteWorkloadCluster: "kid"},
		})
		if found := left(t, filepath.Join(dir, "kid", "generated", "*")); len(found) > 0 {
			t.Errorf("after %s there is still %v", verb, found)
		}
	}

	write(spec)
	run(lifecycle.Create, lifecycle.SetupAndValidate, lifecycle.CreateWorkloadCluster, lifecycle.InstallAddOns)
	w.ready("kid", "1/1", "1/1")
	made := w.machinesOf("kid")
	if devices, _ := w.metal.Left(t); devices != 2 {
		t.Errorf("%d machines were made for 2", devices)
	}

	write(strings.ReplaceAll(spec, "count: 1}\n  datacenterRef", "count: 2}\n  datacenterRef"))
	run(lifecycle.Upgrade, lifecycle.SetupAndValidate, lifecycle.PauseEksAAndFluxReconcile, lifecycle.UpgradeWorkloadCluster,
		lifecycle.UpdateClusterAndGitResources, lifecycle.ResumeFluxReconcile)
	w.ready("kid", "1/1", "2/2")
	after := w.machinesOf("kid")
	for name := range made {
		if !after[name] {
			t.Errorf("machine %s was replaced", name)
		}
	}
	if w.cluster("kid").IsPaused() || len(after) != 3 {
		t.Errorf("after the upgrade: %v", after)
	}

	run(lifecycle.Delete, lifecycle.SetupAndValidate, lifecycle.DeleteWorkloadCluster, lifecycle.CleanupGitRepo)
	w.awaitDeletion("kid")
	if diff := cmp.Diff([]string{}, left(t, filepath.Join(dir, "kid", "*.kubeconfig"))); diff != "" {
		t.Errorf("remaining files (-want +got):\n%s", diff)
	}
}

// machinesOf returns the names of a cluster's machines.
func (w *world) machinesOf(name string) map[string]bool {
	w.Helper()
	machines := &clusterv1.MachineList{}
	w.must(w.List(w.Context(), machines, client.InNamespace(anywherev1.SystemNamespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}))
	out := map[string]bool{}
	for i := range machines.Items {
		out[machines.Items[i].Name] = true
	}
	return out
}

func left(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{}, found...)
}
