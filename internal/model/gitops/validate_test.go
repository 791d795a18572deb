package gitops_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/model/gitops"
)

func TestValidate(t *testing.T) {
	dev := root + "/workload-clusters/dev"
	change := func(old, with string) map[string]string {
		return map[string]string{dev + "/eksa-cluster.yaml": strings.Replace(specText("dev"), old, with, 1)}
	}
	for _, one := range []struct {
		name  string
		files map[string]string
		want  []string // each must be part of the problem at its place
	}{
		{"a valid cluster", change("", ""), nil},
		{"an invalid count", change("    count: 1\n  worker", "    count: -1\n  worker"), []string{dev + "/eksa-cluster.yaml:11: spec.controlPlaneConfiguration.count"}},
		{"an unknown field and a missing object", change("  datacenterRef:\n    kind: DockerDatacenterConfig\n    name: dev", "  typo: 1\n  datacenterRef:\n    kind: DockerDatacenterConfig\n    name: other"), []string{
			dev + "/eksa-cluster.yaml:16: spec.typo", dev + "/eksa-cluster.yaml:19: spec.datacenterRef.name",
		}},
		{"a version that is a number", change(`"1.36"`, "1.36"), []string{dev + "/eksa-cluster.yaml:7: spec.kubernetesVersion: Flux reads a number"}},
		{"a version of a group that is a number", change("  - name: md-0\n", "  - name: md-0\n    kubernetesVersion: 1.36\n"), []string{
			dev + "/eksa-cluster.yaml:15: spec.workerNodeGroupConfigurations[0].kubernetesVersion: Flux reads a number",
		}},
		{"invalid YAML", change("spec:", "spec: ["), []string{dev + "/eksa-cluster.yaml: document 1"}},
		{"two clusters in a file", map[string]string{dev + "/x.yaml": specText("a") + "---\n" + specText("b")}, []string{
			dev + "/x.yaml:2: the file has 2 Clusters", dev + "/x.yaml:27: the file has 2 Clusters",
		}},
		{"a cluster in two files", map[string]string{root + "/a.yaml": specText("a"), root + "/b/b.yaml": specText("a")}, []string{root + `/b/b.yaml: cluster "a" is in ` + root + "/a.yaml too"}},
		{"a kustomization that leaves a cluster out", map[string]string{root + "/kustomization.yaml": "resources: [flux]\n", root + "/flux/kustomization.yaml": "namespace: x\n", root + "/a/a.yaml": specText("a")}, []string{
			root + `/kustomization.yaml: cluster "a" is not listed (add a/a.yaml to resources)`,
		}},
		{"a kustomization with missing files", map[string]string{root + "/kustomization.yaml": "resources: [gone.yaml, ../mgmt/dir, https://x.example/y, github.com/a/b, ../elsewhere]\n"}, []string{
			root + `/kustomization.yaml: resource "gone.yaml" does not exist`, root + `/kustomization.yaml: resource "../mgmt/dir" does not exist`,
		}},
		{"a kustomization that can't be read", map[string]string{root + "/kustomization.yaml": "resources: ["}, []string{root + "/kustomization.yaml: document 1"}},
		{"a template without specs", map[string]string{root + "/chart/x.yaml": "{{ if .Values.x }}\na: b\n{{ end }}\n"}, nil},
	} {
		t.Run(one.name, func(t *testing.T) {
			problems, err := gitops.Validate(repository(one.files), root)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, p := range problems {
				text := p.String()
				if i < len(one.want) && strings.HasPrefix(text, one.want[i]) {
					text = one.want[i]
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(one.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateReportsLinks(t *testing.T) {
	fsys := fstest.MapFS{root + "/link.yaml": &fstest.MapFile{Data: []byte("x"), Mode: 0o777 | 1<<27}}
	problems, err := gitops.Validate(fsys, root)
	if err != nil || len(problems) != 1 || !strings.Contains(problems[0].String(), "not a regular file") {
		t.Errorf("got %v, %v", problems, err)
	}
}
