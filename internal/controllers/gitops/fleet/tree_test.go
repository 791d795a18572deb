package fleet

import (
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manifest is a cluster in namespace team-a.
const manifest = `apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata: {name: NAME, namespace: team-a}
spec:
  kubernetesVersion: "1.36"
  managementCluster: {name: mgmt}
  controlPlaneConfiguration: {count: 1}
  workerNodeGroupConfigurations: [{name: md-0, count: 1}]
  datacenterRef: {kind: DockerDatacenterConfig, name: NAME}
  clusterNetwork:
    cniConfig: {cilium: {}}
    pods: {cidrBlocks: [192.168.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata: {name: NAME, namespace: team-a}
spec: {}
`

const (
	root = "clusters/mgmt"
	dirs = root + "/workload-clusters/"
)

// specOf returns the spec of a cluster.
func specOf(name string) string { return strings.ReplaceAll(manifest, "NAME", name) }

// repository is the content of a repository.
type repository map[string]string

func (r repository) fs() fstest.MapFS {
	out := fstest.MapFS{}
	for name, content := range r {
		out[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return out
}

// with returns the repository with clusters in directories of their own.
func (r repository) with(names ...string) repository {
	for _, name := range names {
		r[dirs+name+"/eksa-cluster.yaml"] = specOf(name)
		r[dirs+name+"/kustomization.yaml"] = "resources: [eksa-cluster.yaml]\n"
	}
	return r
}

func TestFind(t *testing.T) {
	for name, tt := range map[string]struct {
		files repository
		want  presence
	}{
		"a cluster":                        {repository{}.with("dev", "prod"), present},
		"a cluster that moved":             {repository{root + "/elsewhere/dev.yaml": specOf("dev")}, present},
		"a cluster that the path omits":    {repository{root + "/kustomization.yaml": "resources: []\n"}.with("dev"), present},
		"only another cluster":             {repository{}.with("prod"), absent},
		"a path without clusters":          {repository{root + "/kustomization.yaml": "resources: []\n"}, absent},
		"a missing path":                   {repository{"README.md": ""}, unknown},
		"an empty repository":              {repository{}, unknown},
		"a spec with a mistake":            {repository{dirs + "dev/eksa-cluster.yaml": strings.Replace(specOf("dev"), "count: 1", "count: -1", 1)}, broken},
		"a spec that isn't YAML":           {repository{dirs + "dev/eksa-cluster.yaml": specOf("dev") + "\n---\na: ["}, broken},
		"a cluster that is defined twice":  {repository{root + "/dev.yaml": specOf("dev")}.with("dev"), broken},
		"another file that isn't YAML":     {repository{dirs + "prod/eksa-cluster.yaml": specOf("prod") + "\n---\na: ["}, absent},
		"the same name in other namespace": {repository{dirs + "dev/a.yaml": strings.ReplaceAll(specOf("dev"), "team-a", "team-b")}, absent},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(tt.files.fs(), root)
			if err != nil {
				t.Fatal(err)
			}
			if found := got.find(client.ObjectKey{Namespace: "team-a", Name: "dev"}, dirs+"dev"); found != tt.want {
				t.Errorf("found %d, want %d in %+v", found, tt.want, got)
			}
		})
	}
}

func TestClustersNeedDirectoriesOfTheirOwn(t *testing.T) {
	for name, tt := range map[string]struct {
		files repository
		want  map[string]bool
	}{
		"one directory each": {repository{}.with("a", "b"), map[string]bool{"a": false, "b": false}},
		"one directory":      {repository{dirs + "a.yaml": specOf("a"), dirs + "b.yaml": specOf("b")}, map[string]bool{"a": true, "b": true}},
		"a directory in another one": {
			repository{root + "/a.yaml": specOf("a")}.with("b"), map[string]bool{"a": true, "b": false},
		},
		"a directory in another one that lists its files": {
			repository{root + "/a.yaml": specOf("a"), root + "/kustomization.yaml": "resources: [a.yaml]\n", root + "/b/b.yaml": specOf("b"), root + "/b/kustomization.yaml": "resources: [b.yaml]\n"},
			map[string]bool{"a": false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(tt.files.fs(), root)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range got.clusters {
				if want, listed := tt.want[e.key.Name]; listed && (e.problem != "") != want {
					t.Errorf("problem of %s is %q, want one: %t", e.key.Name, e.problem, want)
				}
			}
		})
	}
}
