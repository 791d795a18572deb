package gitops_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/drover-dev/drover/internal/model/gitops"
)

func TestRemove(t *testing.T) {
	dev := root + "/workload-clusters/dev"
	for cluster, want := range map[string][]string{
		"dev":    {"-" + dev + "/addons/cni.yaml", "-" + dev + "/eksa-cluster.yaml", "-" + dev + "/kustomization.yaml", "-" + dev + "/packages/hello.yaml"},
		"dev-2":  {"-" + dev + "-2/eksa-cluster.yaml", dev + "-2/kustomization.yaml"},
		"old":    {"-" + root + "/old/eksa-system/eksa-cluster.yaml", "-" + root + "/old/eksa-system/kustomization.yaml"},
		"hand-a": {"-" + root + "/by-hand/a.yaml"},
		"mgmt":   {"-" + root + "/eksa-system/eksa-cluster.yaml", "-" + root + "/eksa-system/kustomization.yaml"},
		"new":    nil,
	} {
		t.Run(cluster, func(t *testing.T) {
			changes, err := gitops.Remove(fleet(), detect(t, fleet(), config(t, specText(cluster))))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, names(changes)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Removing one cluster after the other never changes another one, and can be repeated.
func TestRemoveKeepsOtherClusters(t *testing.T) {
	fsys := fleet()
	for _, cluster := range []string{"dev", "hand-a", "mgmt", "dev-2", "inner", "old", "hand-b"} {
		before, err := gitops.Read(fsys, root)
		if err != nil {
			t.Fatal(err)
		}
		loc := detect(t, fsys, config(t, specText(cluster)))
		changes, err := gitops.Remove(fsys, loc)
		if err != nil {
			t.Fatal(err)
		}
		fsys = commit(fsys, changes)
		after, err := gitops.Read(fsys, root)
		if err != nil {
			t.Fatal(err)
		}
		if len(after.Clusters) != len(before.Clusters)-1 {
			t.Fatalf("removing %s left %d of %d clusters", cluster, len(after.Clusters), len(before.Clusters))
		}
		for _, c := range after.Clusters {
			if c.Config == nil {
				t.Errorf("removing %s broke %s: %v", cluster, c.Location.Cluster, c.Problems)
			}
		}
		if again, err := gitops.Remove(fsys, detect(t, fsys, config(t, specText(cluster)))); err != nil || len(again) > 0 {
			t.Errorf("the second time changed %v (%v)", names(again), err)
		}
	}
	if fsys["README.md"] == nil || fsys[root+"/flux-system/gotk-sync.yaml"] == nil || fsys["clusters/other/workload-clusters/x/eksa-cluster.yaml"] == nil {
		t.Error("files of no cluster were removed")
	}
}

func TestRemoveKeepsThePathForFlux(t *testing.T) {
	fsys := repository(map[string]string{root + "/workload-clusters/dev/eksa-cluster.yaml": specText("dev")})
	changes, err := gitops.Remove(fsys, detect(t, fsys, config(t, specText("dev"))))
	if err != nil {
		t.Fatal(err)
	}
	checkBuilds(t, changes[root+"/kustomization.yaml"])
	if again, err := gitops.Remove(commit(fsys, changes), detect(t, commit(fsys, changes), config(t, specText("dev")))); err != nil || len(again) > 0 {
		t.Errorf("the second time changed %v (%v)", names(again), err)
	}
}

func TestRemoveEditsKustomizations(t *testing.T) {
	file := root + "/kustomization.yaml"
	fsys := fleet()
	for name, data := range repository(map[string]string{file: "resources:\n- flux-system\n# Development.\n- ./workload-clusters/dev/\n- workload-clusters/dev-2\n"}) {
		fsys[name] = data
	}
	changes, err := gitops.Remove(fsys, detect(t, fsys, config(t, specText("dev"))))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(changes[file]), "resources:\n- flux-system\n- workload-clusters/dev-2\n"; got != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
	alone := repository(map[string]string{file: "resources:\n- dev.yaml\n", root + "/dev.yaml": specText("dev")})
	changes, err = gitops.Remove(alone, detect(t, alone, config(t, specText("dev"))))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"-" + root + "/dev.yaml", file}, names(changes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	checkBuilds(t, changes[file])
}

func TestRemoveIgnoresBrokenFilesOfOthers(t *testing.T) {
	fsys := fleet()
	broken := repository(map[string]string{root + "/broken/kustomization.yaml": "resources: [", root + "/broken/x.yaml": "anywhere.eks.amazonaws.com: ["})
	for name, data := range broken {
		fsys[name] = data
	}
	changes, err := gitops.Remove(fsys, detect(t, fsys, config(t, specText("dev"))))
	if err != nil || len(changes) != 4 {
		t.Errorf("changed %v (%v)", names(changes), err)
	}
}

// checkBuilds checks that kustomize accepts a kustomization without resources, which it rejects if
// it has no fields.
func checkBuilds(t *testing.T, kustomization []byte) {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	if err := disk.WriteFile("/kustomization.yaml", kustomization); err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/")
	if err != nil || built.Size() != 0 {
		t.Errorf("built %v, %v from:\n%s", built, err, kustomization)
	}
}

func TestRemoveRejects(t *testing.T) {
	two := root + "/two.yaml"
	fsys := repository(map[string]string{two: specText("a") + "---\n" + specText("b")})
	for name, loc := range map[string]gitops.Location{
		"a file outside of the path":   {Path: root, Cluster: "x", Dir: "clusters/other", File: "clusters/other/x.yaml"},
		"a file of several clusters":   {Path: root, Cluster: "a", Dir: root, File: two},
		"a file outside its directory": {Path: root, Cluster: "a", Dir: root + "/x", File: two},
		"a path that is not clean":     {Path: root + "/..", Cluster: "a", Dir: "clusters", File: "clusters/x.yaml"},
	} {
		if changes, err := gitops.Remove(fsys, loc); err == nil {
			t.Errorf("%s: changed %s", name, strings.Join(names(changes), ", "))
		}
	}
}
