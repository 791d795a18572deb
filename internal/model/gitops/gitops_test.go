package gitops_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/model/gitops"
)

func TestDetect(t *testing.T) {
	for _, one := range []struct{ name, cluster, dir, file string }{
		{"the management cluster", "mgmt", root + "/eksa-system", "eksa-cluster.yaml"},
		{"a workload cluster", "dev", root + "/workload-clusters/dev", "eksa-cluster.yaml"},
		{"a cluster in the layout of the other tool", "old", root + "/old/eksa-system", "eksa-cluster.yaml"},
		{"a file written by hand", "hand-b", root + "/by-hand", "b.yml"},
		{"a new cluster", "new", root + "/workload-clusters/new", "eksa-cluster.yaml"},
	} {
		t.Run(one.name, func(t *testing.T) {
			got := detect(t, fleet(), config(t, specText(one.cluster)))
			want := gitops.Location{Path: root, Cluster: one.cluster, Dir: one.dir, File: one.dir + "/" + one.file}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDetectUsesTheDefaultPath(t *testing.T) {
	for text, want := range map[string]string{
		specText("dev"):  root + "/workload-clusters/dev",
		managementText(): root + "/eksa-system",
	} {
		got, err := gitops.Detect(fstest.MapFS{}, "", config(t, text).Cluster)
		if err != nil || got.Dir != want {
			t.Errorf("got %+v, %v, want %s", got, err, want)
		}
	}
}

func TestDetectRejects(t *testing.T) {
	for _, one := range []struct {
		name, dir, want string
		files           map[string]string
	}{
		{"a path outside of the repository", "../x", "not a directory of the repository", nil},
		{"a cluster in two files", root, "several files", map[string]string{root + "/a.yaml": specText("dev"), root + "/b.yaml": specText("dev")}},
		{"a directory of another cluster", root, `has cluster "other" already`, map[string]string{root + "/workload-clusters/dev/x.yaml": specText("other")}},
		{"a file that can't be read", root, "document 1", map[string]string{root + "/workload-clusters/dev/eksa-cluster.yaml": "anywhere.eks.amazonaws.com: ["}},
	} {
		t.Run(one.name, func(t *testing.T) {
			_, err := gitops.Detect(repository(one.files), one.dir, config(t, specText("dev")).Cluster)
			if err == nil || !strings.Contains(err.Error(), one.want) {
				t.Errorf("got %v, want %q", err, one.want)
			}
		})
	}
}

func TestDetectRejectsNamesThatLeaveTheDirectory(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/"} {
		c := config(t, specText("dev")).Cluster
		c.Name = name
		if loc, err := gitops.Detect(fstest.MapFS{}, root, c); err == nil {
			t.Errorf("%q: %+v", name, loc)
		}
	}
}

func TestReadAcceptsPathsOfFlux(t *testing.T) {
	for _, dir := range []string{root, "./" + root, "/" + root + "/", "./" + root + "/."} {
		got, err := gitops.Read(fleet(), dir)
		if err != nil || got.Path != root || len(got.Clusters) != 7 {
			t.Errorf("%s: %+v, %v", dir, got, err)
		}
	}
}

func TestReadReturnsFilesOfClusters(t *testing.T) {
	got, err := gitops.Read(fleet(), root)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Problems) > 0 {
		t.Errorf("problems: %v", got.Problems)
	}
	files := map[string][]string{}
	later := map[string][]string{}
	digests := map[string]bool{}
	for _, c := range got.Clusters {
		if c.Config == nil || len(c.Problems) > 0 {
			t.Errorf("%s: %v", c.Location.Cluster, c.Problems)
		}
		files[c.Location.Cluster] = c.Files
		digests[c.Digest] = true
		if c.Later != nil {
			later[c.Location.Cluster] = c.Later
		}
	}
	dev := root + "/workload-clusters/dev"
	want := map[string][]string{
		"mgmt":   {root + "/eksa-system/eksa-cluster.yaml", root + "/eksa-system/kustomization.yaml"},
		"dev":    {dev + "/addons/cni.yaml", dev + "/eksa-cluster.yaml", dev + "/kustomization.yaml", dev + "/packages/hello.yaml"},
		"dev-2":  {dev + "-2/eksa-cluster.yaml"},
		"inner":  {dev + "-2/nested/eksa-cluster.yaml", dev + "-2/nested/notes/unrelated.md"},
		"old":    {root + "/old/eksa-system/eksa-cluster.yaml", root + "/old/eksa-system/kustomization.yaml"},
		"hand-a": {root + "/by-hand/a.yaml"},
		"hand-b": {root + "/by-hand/b.yml"},
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"dev": {dev + "/addons", dev + "/packages"}}, later); diff != "" {
		t.Errorf("later (-want +got):\n%s", diff)
	}
	if len(digests) != len(want) {
		t.Errorf("%d digests of %d clusters", len(digests), len(want))
	}
}

func TestDigestCoversPathsAndContents(t *testing.T) {
	digest := func(files map[string]string) string {
		files[root+"/workload-clusters/dev/eksa-cluster.yaml"] = specText("dev")
		f, err := gitops.Read(repository(files), root)
		if err != nil || len(f.Clusters) != 1 {
			t.Fatalf("%+v, %v", f, err)
		}
		return f.Clusters[0].Digest
	}
	addons := root + "/workload-clusters/dev/addons/"
	seen := map[string]string{}
	for name, files := range map[string]map[string]string{
		"no add-ons":      {},
		"an add-on":       {addons + "a.yaml": "a"},
		"another content": {addons + "a.yaml": "b"},
		"another name":    {addons + "b.yaml": "a"},
		"two":             {addons + "a.yaml": "a", addons + "b.yaml": "a"},
	} {
		d := digest(files)
		if other, twice := seen[d]; twice {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[d] = name
		if again := digest(files); again != d {
			t.Errorf("%s has another digest the second time", name)
		}
	}
	if digest(map[string]string{root + "/eksa-system/x.yaml": "x"}) != digest(map[string]string{}) {
		t.Error("a file of no cluster changed the digest")
	}
}
