package gitops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-dev/drover/internal/git"
	model "github.com/drover-dev/drover/internal/model/gitops"
	"github.com/drover-dev/drover/internal/test/gittest"
)

const valid = `apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata:
  name: one
spec:
  kubernetesVersion: "1.35"
  management: false
  controlPlaneConfiguration:
    count: 1
  workerNodeGroupConfigurations:
  - name: md-0
    count: 1
  datacenterRef:
    kind: DockerDatacenterConfig
    name: one
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata:
  name: one
`

// checkout returns a checkout with a committed cluster.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "clusters/mgmt/one/one.yaml", valid)
	gittest.Run(t, dir, "init", "--initial-branch=main")
	gittest.Run(t, dir, "add", ".")
	gittest.Run(t, dir, "commit", "-m", "Add cluster one")
	return dir
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCheckReportsProblemsAndSecretsWithTheirLines(t *testing.T) {
	dir := checkout(t)
	source, err := Directory(dir)
	if err != nil {
		t.Fatal(err)
	}
	v, err := Check(source)
	if err != nil || !v.Valid() || v.Clusters != 1 {
		t.Fatalf("a valid repository: %+v, %v", v, err)
	}
	write(t, dir, "clusters/mgmt/one/one.yaml", strings.Replace(valid, "count: 1", "count: 2", 1))
	write(t, dir, "clusters/mgmt/secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData:\n  token: not-encrypted-at-all\n")
	v, err = Check(source)
	if err != nil || v.Valid() {
		t.Fatalf("%+v, %v", v, err)
	}
	if len(v.Problems) != 1 || v.Problems[0].File != "clusters/mgmt/one/one.yaml" || v.Problems[0].Line != 9 {
		t.Errorf("problems: %v", v.Problems)
	}
	if len(v.Secrets) != 1 || v.Secrets[0].File != "clusters/mgmt/secret.yaml" || strings.Contains(v.Secrets[0].String(), "not-encrypted") {
		t.Errorf("secrets: %v", v.Secrets)
	}
}

func TestDiffComparesTheWorkingDirectoryWithARevision(t *testing.T) {
	dir := checkout(t)
	if report, err := Diff(dir, "HEAD"); err != nil || len(report.Clusters) > 0 {
		t.Fatalf("without a change: %+v, %v", report, err)
	}
	write(t, dir, "clusters/mgmt/one/one.yaml", strings.Replace(valid, `"1.35"`, `"1.36"`, 1))
	before := t.TempDir()
	write(t, before, "one/one.yaml", valid)
	below := filepath.Join(dir, "clusters/mgmt")
	for name, tt := range map[string]struct{ dir, from, file string }{
		"the whole checkout with HEAD": {dir, "HEAD", "clusters/mgmt/one/one.yaml"},
		"a directory with a branch":    {below, "main", "clusters/mgmt/one/one.yaml"},
		"a directory with another one": {below, before, "one/one.yaml"},
	} {
		report, err := Diff(tt.dir, tt.from)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := []model.ClusterChange{{Cluster: "one", Action: model.Changed, File: tt.file, Fields: []model.FieldChange{
			{Object: "Cluster/one", Path: "spec.kubernetesVersion", Old: `"1.35"`, New: `"1.36"`},
		}}}
		if diff := cmp.Diff(want, report.Clusters, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, tt := range map[string]struct{ dir, from string }{
		"no such revision":       {dir, "none"},
		"no checkout":            {before, "HEAD"},
		"a file is no directory": {filepath.Join(below, "one/one.yaml"), "HEAD"},
	} {
		if _, err := Diff(tt.dir, tt.from); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRemoteIsCheckedWithoutACheckout(t *testing.T) {
	server := gittest.NewHTTPS(t)
	server.Create("fleet.git").Commit("main", map[string]string{"clusters/mgmt/one.yaml": valid})
	remote := git.Remote{URL: server.URL("fleet.git"), Branch: "main", Credentials: git.Credentials{Username: gittest.Username, Password: gittest.Password, CA: server.CA}}
	source, err := Remote(t.Context(), remote, "clusters/mgmt")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := Check(source); err != nil || v.Clusters != 1 || !v.Valid() {
		t.Errorf("%+v, %v", v, err)
	}
	remote.Branch = "none"
	if _, err := Remote(t.Context(), remote, "."); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a branch that doesn't exist: %v", err)
	}
}
