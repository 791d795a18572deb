package gitops_test

import (
	"bytes"
	"testing"
	"testing/fstest"

	"github.com/drover-dev/drover/internal/model/gitops"
)

// FuzzWrite writes a spec over a file that someone wrote. It fails, or the repository has the spec
// afterwards and a second time changes nothing.
func FuzzWrite(f *testing.F) {
	f.Add([]byte(specText("dev")), "resources:\n- eksa-cluster.yaml\n")
	f.Add(bytes.ReplaceAll([]byte(specText("dev")), []byte("\n"), []byte("\r\n")), "")
	f.Add([]byte("a: b\n---\n"), "# empty")
	f.Add([]byte("apiVersion: anywhere.eks.amazonaws.com/v1alpha1\nkind: Cluster\nmetadata: {name: dev, labels: &a {x: \"y\"}, annotations: *a}\nSpec: {KubernetesVersion: 1.30, typo: 1}\n"), "{}")
	f.Add([]byte("apiVersion: v1\nkind: List\nitems:\n- apiVersion: anywhere.eks.amazonaws.com/v1alpha1\n  kind: Cluster\n  metadata: {name: dev}\n"), "resources: [x]")
	f.Fuzz(checkWrite)
}

func checkWrite(t *testing.T, file []byte, kustomization string) {
	dir := root + "/workload-clusters/dev"
	fsys := fstest.MapFS{
		dir + "/eksa-cluster.yaml":  &fstest.MapFile{Data: file},
		dir + "/kustomization.yaml": &fstest.MapFile{Data: []byte(kustomization)},
	}
	_, _ = gitops.Validate(fsys, root)
	_, _ = gitops.Secrets(fsys, root)
	c := config(t, specText("dev"))
	loc := gitops.Location{Path: root, Cluster: "dev", Dir: dir, File: dir + "/eksa-cluster.yaml"}
	changes, err := gitops.Write(fsys, loc, c)
	if err != nil {
		return
	}
	after := commit(fsys, changes)
	checkSame(t, after, c)
	again, err := gitops.Write(after, loc, c)
	if err != nil || len(again) > 0 {
		t.Errorf("the second time changed %v (%v)", names(again), err)
	}
	if _, err := gitops.Diff(fsys, after, root); err != nil {
		t.Error(err)
	}
}
