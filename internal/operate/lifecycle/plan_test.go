package lifecycle

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/plane"
)

// planned returns a cluster of both kinds.
func planned(t *testing.T) map[string]Planner {
	t.Helper()
	o := Options{Dir: t.TempDir(), Again: "drover create cluster -f one.yaml"}
	return map[string]Planner{
		"workload":   &Workload{Options: o, Config: clusterOf(1, nil)},
		"management": &Management{Options: o, Config: clusterOf(1, nil), Bootstrap: plane.Home{Dir: filepath.Join(o.Dir, "bootstrap")}},
	}
}

// The names and their order are recorded in checkpoints: an earlier Drover's must stay valid.
func TestPhasesOfEachCommand(t *testing.T) {
	want := map[string]map[Verb][]string{
		"workload": {
			Create:  {"SetupAndValidate", "CreateWorkloadCluster", "InstallAddOns"},
			Upgrade: {"SetupAndValidate", "PauseEksAAndFluxReconcile", "UpgradeWorkloadCluster", "UpdateClusterAndGitResources", "ResumeFluxReconcile"},
			Delete:  {"SetupAndValidate", "DeleteWorkloadCluster", "CleanupGitRepo"},
		},
		"management": {
			Create: {
				"SetupAndValidate", "CreateBootstrapCluster", "CreateWorkloadCluster", "MoveManagementCluster", "InstallEKSAComponents", "InstallAddOns", "DeleteBootstrap",
			},
			Upgrade: {
				"SetupAndValidate", "UpdateSecrets", "UpgradeNeeded", "PauseEksAAndFluxReconcile", "CreateBootstrapCluster", "InstallCAPI", "MoveManagementToBootstrap",
				"UpgradeWorkloadCluster", "MoveManagementToWorkload", "UpdateClusterAndGitResources", "ResumeFluxReconcile", "DeleteBootstrap",
			},
			Delete: {
				"SetupAndValidate", "CreateBootstrapCluster", "InstallCAPI", "MoveManagementToBootstrap", "DeleteWorkloadCluster", "CleanupGitRepo", "DeleteBootstrap",
			},
		},
	}
	for kind, p := range planned(t) {
		for verb, command := range map[Verb]func() (*phase.Plan, error){Create: p.Create, Upgrade: p.Upgrade, Delete: p.Delete} {
			plan, err := command()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[kind][verb], plan.Names()); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", verb, kind, diff)
			}
			checkPlan(t, verb, plan)
		}
	}
}

func checkPlan(t *testing.T, verb Verb, plan *phase.Plan) {
	t.Helper()
	if plan.Command != string(verb)+" cluster" || plan.Cluster != "one" || plan.Again == "" {
		t.Errorf("plan %q of %q, resumed with %q", plan.Command, plan.Cluster, plan.Again)
	}
	if deletes := verb == Delete; plan.Supersedes != deletes || (plan.Fingerprint == "") != deletes {
		t.Errorf("%s supersedes: %v, fingerprint %q", verb, plan.Supersedes, plan.Fingerprint)
	}
	for i, p := range plan.Phases {
		if p.Summary == "" || strings.HasSuffix(p.Summary, ".") {
			t.Errorf("%s: summary %q of %s", verb, p.Summary, p.Name)
		}
		if p.Repeat != (i == 0) {
			t.Errorf("%s: phase %s is repeated: %v", verb, p.Name, p.Repeat)
		}
	}
}

func TestCreationOfAManagementClusterFixesTheSpecOnceItMoves(t *testing.T) {
	plan, err := planned(t)["management"].Create()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plan.Phases {
		if p.Fixes != (p.Name == MoveManagementCluster) {
			t.Errorf("phase %s fixes the spec: %v", p.Name, p.Fixes)
		}
	}
}

func TestFingerprintIdentifiesTheContentOfASpec(t *testing.T) {
	first, err := fingerprint(clusterOf(1, nil))
	if err != nil {
		t.Fatal(err)
	}
	same, _ := fingerprint(clusterOf(1, nil))
	other, _ := fingerprint(clusterOf(3, nil))
	if first != same || first == other || !strings.HasPrefix(first, "sha256:") {
		t.Errorf("fingerprints %q, %q, %q", first, same, other)
	}
}

func TestCreationListsWhatItCreates(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "team-a", Name: "one"}
	c := clusterOf(3, map[string]int{"a": 1})
	c.Cluster.ObjectMeta, c.Cluster.Spec.KubernetesVersion = meta, "1.36"
	c.Machines, c.Docker = nil, &anywherev1.DockerDatacenterConfig{ObjectMeta: meta}
	got := strings.Join((&Workload{Options: Options{Dir: "/d"}, Config: c}).creates(), "\n")
	for _, want := range []string{
		"creates Cluster team-a/one: Kubernetes 1.36, 3 control plane machines, 1 worker",
		"creates DockerDatacenterConfig team-a/one",
		"writes /d/one/one-eks-a-cluster.kubeconfig",
		"writes /d/one/one-eks-a-cluster.yaml",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the list lacks %q:\n%s", want, got)
		}
	}
}

func TestChangedObjectsCountsEachObjectOnce(t *testing.T) {
	w := &Workload{Config: &spec.Config{}, differences: []Difference{
		{Object: "Cluster/one", Path: "spec.a"}, {Object: "PacketMachineConfig/one", Path: "spec.a"}, {Object: "Cluster/one", Path: "spec.b"},
	}}
	if n := w.changedObjects(); n != 2 {
		t.Errorf("%d objects change, want 2", n)
	}
	if diff := cmp.Diff([]string{"changes Cluster/one spec.a: none → none"}, changeLines(w.differences[:1])); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
