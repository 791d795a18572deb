package gitops_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/drover-dev/drover/internal/model/gitops"
	"github.com/drover-dev/drover/internal/model/spec"
)

const root = "clusters/mgmt"

// repository returns a file system with files.
func repository(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// commit returns a repository with changes.
func commit(fsys fstest.MapFS, changes gitops.Changes) fstest.MapFS {
	after := maps.Clone(fsys)
	for name, data := range changes {
		if data == nil {
			delete(after, name)
			continue
		}
		after[name] = &fstest.MapFile{Data: data}
	}
	return after
}

// names returns the paths of changes, with a minus in front of those that are removed.
func names(changes gitops.Changes) []string {
	var all []string
	for name, data := range changes {
		if data == nil {
			name = "-" + name
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// specText returns the spec of a workload cluster, with comments.
func specText(name string) string {
	return strings.ReplaceAll(`# Owned by team-a.
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata:
  name: NAME # also in DNS
spec:
  kubernetesVersion: "1.36"
  managementCluster:
    name: mgmt
  controlPlaneConfiguration:
    count: 1
  workerNodeGroupConfigurations:
  # Small until March.
  - name: md-0
    count: 1
  datacenterRef:
    kind: DockerDatacenterConfig
    name: NAME
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata:
  name: NAME
spec: {}
`, "NAME", name)
}

// managementText returns the spec of the management cluster.
func managementText() string { return specText("mgmt") }

func config(t testing.TB, text string) *spec.Config {
	t.Helper()
	c, err := spec.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// packetText returns the spec of a cluster with all kinds of objects.
func packetText(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("../spec/testdata/packet.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func detect(t testing.TB, fsys fstest.MapFS, c *spec.Config) gitops.Location {
	t.Helper()
	loc, err := gitops.Detect(fsys, root, c.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func write(t testing.TB, fsys fstest.MapFS, c *spec.Config) gitops.Changes {
	t.Helper()
	changes, err := gitops.Write(fsys, detect(t, fsys, c), c)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// fleet is a repository with clusters in every layout.
func fleet() fstest.MapFS {
	return repository(map[string]string{
		"README.md":                                                 "A fleet.",
		root + "/flux-system/gotk-sync.yaml":                        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system}\n",
		root + "/flux-system/kustomization.yaml":                    "resources:\n- gotk-sync.yaml\n",
		root + "/eksa-system/eksa-cluster.yaml":                     managementText(),
		root + "/eksa-system/kustomization.yaml":                    "resources:\n- eksa-cluster.yaml\n",
		root + "/workload-clusters/dev/eksa-cluster.yaml":           specText("dev"),
		root + "/workload-clusters/dev/kustomization.yaml":          "resources:\n- eksa-cluster.yaml\n",
		root + "/workload-clusters/dev/packages/hello.yaml":         "kind: Package\n",
		root + "/workload-clusters/dev/addons/cni.yaml":             "kind: HelmChartProxy\n",
		root + "/workload-clusters/dev-2/eksa-cluster.yaml":         specText("dev-2"),
		root + "/workload-clusters/dev-2/kustomization.yaml":        "resources:\n- eksa-cluster.yaml\n- nested/eksa-cluster.yaml\n",
		root + "/old/eksa-system/eksa-cluster.yaml":                 specText("old"),
		root + "/old/eksa-system/kustomization.yaml":                "resources:\n- eksa-cluster.yaml\n",
		root + "/by-hand/a.yaml":                                    specText("hand-a"),
		root + "/by-hand/b.yml":                                     specText("hand-b"),
		"clusters/other/workload-clusters/x/eksa-cluster.yaml":      specText("x"),
		root + "/workload-clusters/dev-2/nested/eksa-cluster.yaml":  specText("inner"),
		root + "/workload-clusters/dev-2/nested/notes/unrelated.md": "notes",
	})
}
