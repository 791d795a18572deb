package gitops_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-dev/drover/internal/model/gitops"
	"github.com/drover-dev/drover/internal/model/spec"
)

func TestWriteCreatesACluster(t *testing.T) {
	c := config(t, specText("new"))
	changes := write(t, fstest.MapFS{}, c)
	dir := root + "/workload-clusters/new"
	if diff := cmp.Diff([]string{dir + "/eksa-cluster.yaml", dir + "/kustomization.yaml"}, names(changes)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- eksa-cluster.yaml\n"
	if got := string(changes[dir+"/kustomization.yaml"]); got != kustomization {
		t.Errorf("kustomization:\n%s", got)
	}
}

func TestWriteChangesOnlyWhatDiffers(t *testing.T) {
	before := specText("dev")
	for _, one := range []struct {
		name   string
		change func(*spec.Config)
		want   string
	}{
		{"nothing", func(*spec.Config) {}, before},
		{"defaults", spec.Default, before},
		{"an explicit default", func(c *spec.Config) { c.Cluster.Spec.ClusterNetwork.Pods.CidrBlocks = []string{spec.DefaultPodCIDR} }, before},
		{
			"a version", func(c *spec.Config) { c.Cluster.Spec.KubernetesVersion = "1.37" },
			strings.Replace(before, `"1.36"`, `"1.37"`, 1),
		},
		{
			"a count of a cluster with defaults", func(c *spec.Config) {
				spec.Default(c)
				*c.Cluster.Spec.WorkerNodeGroupConfigurations[0].Count = 5
			}, strings.Replace(before, "  - name: md-0\n    count: 1", "  - name: md-0\n    count: 5", 1),
		},
		{
			"a label", func(c *spec.Config) { c.Cluster.Labels = map[string]string{"tier": "gold"} },
			strings.Replace(before, "# also in DNS\n", "# also in DNS\n  labels:\n    tier: gold\n", 1),
		},
	} {
		t.Run(one.name, func(t *testing.T) {
			c := config(t, before)
			one.change(c)
			after := commit(fleet(), write(t, fleet(), c))
			if diff := cmp.Diff(one.want, string(after[root+"/workload-clusters/dev/eksa-cluster.yaml"].Data)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWriteQuotesVersionsForFlux(t *testing.T) {
	file := root + "/workload-clusters/dev/eksa-cluster.yaml"
	fsys := repository(map[string]string{file: strings.Replace(specText("dev"), `"1.36"`, "1.36 # number", 1)})
	after := commit(fsys, write(t, fsys, config(t, specText("dev"))))
	if want := strings.Replace(specText("dev"), `"1.36"`, `"1.36" # number`, 1); string(after[file].Data) != want {
		t.Errorf("got:\n%s", after[file].Data)
	}
}

func TestWriteKeepsObjectsInTheirFiles(t *testing.T) {
	cluster, datacenter, _ := strings.Cut(specText("dev"), "---\n")
	const notes = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name:   notes}\n"
	fsys := repository(map[string]string{
		root + "/dev/cluster.yaml": cluster, root + "/dev/infra.yaml": "# Racks.\n" + datacenter + "---\n" + notes, root + "/dev/notes.yaml": notes,
	})
	c := config(t, specText("dev"))
	if changes := write(t, fsys, c); len(changes) > 0 {
		t.Errorf("an equal spec changed %v", names(changes))
	}
	c.Docker.Annotations = map[string]string{"a": "b"}
	changes := write(t, fsys, c)
	want := "# Racks.\n" + strings.Replace(datacenter, "  name: dev\n", "  name: dev\n  annotations:\n    a: b\n", 1) + "---\n" + notes
	if got := string(changes[root+"/dev/infra.yaml"]); len(changes) != 1 || got != want {
		t.Errorf("changed %v:\n%s", names(changes), cmp.Diff(want, got))
	}
}

func TestWriteRemovesObjectsThatAreNotReferenced(t *testing.T) {
	fsys := repository(map[string]string{root + "/prod/x.yaml": packetText(t)})
	c := config(t, packetText(t))
	c.Cluster.Spec.WorkerNodeGroupConfigurations = c.Cluster.Spec.WorkerNodeGroupConfigurations[:1]
	delete(c.Machines, "large")
	after := string(commit(fsys, write(t, fsys, c))[root+"/prod/x.yaml"].Data)
	if strings.Contains(after, "name: large") || !strings.Contains(after, "kind: ConfigMap\nmetadata: {name: notes") {
		t.Errorf("got:\n%s", after)
	}
}

func TestWriteKeepsSharedObjects(t *testing.T) {
	specs, machines, _ := strings.Cut(packetText(t), "---\n")
	dir := root + "/racks/"
	fsys := repository(map[string]string{
		dir + "prod.yaml": specs, dir + "test.yaml": strings.Replace(specs, "name: prod", "name: test", 1), dir + "shared.yaml": machines,
	})
	c := config(t, packetText(t))
	c.Cluster.Spec.WorkerNodeGroupConfigurations = c.Cluster.Spec.WorkerNodeGroupConfigurations[:1]
	if got := names(write(t, fsys, c)); !cmp.Equal(got, []string{dir + "prod.yaml"}) {
		t.Errorf("changed %v", got)
	}
}

func TestWriteAddsResourcesToKustomizations(t *testing.T) {
	for _, one := range []struct {
		name        string
		file        string
		before      string
		want        string
		wantChanges int
	}{
		{"of the path", root + "/kustomization.yaml", "resources:\n  - flux-system # first\n", "resources:\n  - flux-system # first\n  - workload-clusters/new\n", 3},
		{"between them", root + "/workload-clusters/kustomization.yml", "# Mine.\n", "# Mine.\nresources:\n- new\n", 3},
		{"of the cluster", root + "/workload-clusters/new/kustomization.yaml", "namespace: x\n", "namespace: x\nresources:\n- eksa-cluster.yaml\n", 2},
		{"which have them", root + "/kustomization.yaml", "resources: [./workload-clusters/new/]\n", "resources: [./workload-clusters/new/]\n", 2},
		{"outside of the path", "clusters/kustomization.yaml", "resources: []\n", "resources: []\n", 2},
	} {
		t.Run(one.name, func(t *testing.T) {
			fsys := repository(map[string]string{one.file: one.before})
			changes := write(t, fsys, config(t, specText("new")))
			if got := string(commit(fsys, changes)[one.file].Data); got != one.want || len(changes) != one.wantChanges {
				t.Errorf("changes %v:\n%s", names(changes), cmp.Diff(one.want, got))
			}
		})
	}
}

func TestWriteKeepsHandWrittenFilesApplied(t *testing.T) {
	dir := root + "/workload-clusters/new"
	fsys := repository(map[string]string{dir + "/quota.yaml": "kind: ResourceQuota\n", dir + "/addons/a.yaml": "kind: A\n"})
	got := string(write(t, fsys, config(t, specText("new")))[dir+"/kustomization.yaml"])
	if !strings.HasSuffix(got, "resources:\n- eksa-cluster.yaml\n- quota.yaml\n") {
		t.Errorf("got:\n%s", got)
	}
	fsys = repository(map[string]string{dir + "/mine.yaml": specText("new")})
	c := config(t, specText("new"))
	c.Cluster.Spec.ControlPlaneConfiguration.Count = 3
	if got := names(write(t, fsys, c)); !cmp.Equal(got, []string{dir + "/mine.yaml"}) {
		t.Errorf("changed %v", got)
	}
}

func TestWriteRejectsOtherClusters(t *testing.T) {
	fsys := fleet()
	loc := detect(t, fsys, config(t, specText("dev")))
	if _, err := gitops.Write(fsys, loc, config(t, specText("dev-2"))); err == nil {
		t.Error("the spec of another cluster was accepted")
	}
	fsys[loc.File] = &fstest.MapFile{Data: []byte(specText("dev") + "---\n" + specText("other"))}
	if _, err := gitops.Write(fsys, loc, config(t, specText("dev"))); err == nil {
		t.Error("a file with two clusters was changed")
	}
}

// Write and Read are inverse, and a second Write changes nothing.
func TestWriteThenRead(t *testing.T) {
	specs := map[string]string{"docker": specText("dev"), "management": managementText(), "packet": packetText(t)}
	targets := map[string]fstest.MapFS{"an empty repository": {}, "a fleet": fleet()}
	for from, text := range specs {
		for into, fsys := range targets {
			t.Run(from+" to "+into, func(t *testing.T) {
				c := config(t, text)
				after := commit(fsys, write(t, fsys, c))
				checkSame(t, after, c)
				if again := write(t, after, c); len(again) > 0 {
					t.Errorf("the second time changed %v", names(again))
				}
				c.Cluster.Spec.KubernetesVersion = "1.35"
				c.Cluster.Spec.ControlPlaneConfiguration.CertSANs = []string{"a.example.com"}
				c.Cluster.Spec.WorkerNodeGroupConfigurations = c.Cluster.Spec.WorkerNodeGroupConfigurations[:1]
				checkSame(t, commit(after, write(t, after, c)), c)
			})
		}
	}
}

// checkSame checks that a repository has a spec, and every other cluster that it had.
func checkSame(t *testing.T, fsys fstest.MapFS, want *spec.Config) {
	t.Helper()
	f, err := gitops.Read(fsys, root)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Clusters {
		if c.Location.Cluster != want.Cluster.Name {
			continue
		}
		if c.Config == nil {
			t.Fatalf("problems: %v", c.Problems)
		}
		data, err := spec.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		complete := config(t, string(data))
		spec.Default(complete)
		if diff := cmp.Diff(complete, c.Config, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(spec.Config{}, "Ignored")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return
	}
	t.Errorf("cluster %q is missing", want.Cluster.Name)
}
