package e2e

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/test/gittest"
)

const (
	secondPath = "clusters/second/"
	flockPath  = secondPath + "workload-clusters/flock/"
	flock      = "clusters.anywhere.eks.amazonaws.com/flock"
)

// second is the kubeconfig of the management cluster with GitOps.
func (s *story) second() string {
	return filepath.Join(s.dir, "second", "second-eks-a-cluster.kubeconfig")
}

// openRepository starts a Git server that machines reach, and gives commands the credentials for
// it.
func (s *story) openRepository() {
	s.t.Helper()
	at, err := metal.Home{Dir: s.metalHome()}.ReadEndpoint()
	if err != nil {
		s.t.Fatal(err)
	}
	bridge, err := url.Parse(at.Machines)
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = gittest.NewHTTPSAt(s.outer, bridge.Hostname())
	s.git = s.server.Create("fleet.git")
	s.git.Commit(gittest.Branch, map[string]string{"README.md": "The fleet\n"})
	ca := filepath.Join(s.dir, "git-ca.crt")
	if err := os.WriteFile(ca, s.server.CA, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.env = append(s.env, "DROVER_GIT_USERNAME="+gittest.Username, "DROVER_GIT_PASSWORD="+gittest.Password, "DROVER_GIT_CA_FILE="+ca)
}

// gitSpec writes the spec of the management cluster, or of the workload cluster, in Git.
func (s *story) gitSpec(name string, workers int) string {
	s.t.Helper()
	file := s.spec(name, "1.36", workers, "")
	data, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	text := strings.Replace(string(data), "managementCluster: {name: "+name+"}", "managementCluster: {name: second}\n  gitOpsRef: {kind: FluxConfig, name: fleet}", 1)
	text += fmt.Sprintf(`---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: FluxConfig
metadata: {name: fleet}
spec: {systemNamespace: flux-system, clusterConfigPath: clusters/second, branch: %s, git: {repositoryUrl: %q}}
`, gittest.Branch, s.server.URL("fleet.git"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// commitFlock commits a spec of the workload cluster and announces that. The FluxConfig exists.
func (s *story) commitFlock(workers int) {
	s.t.Helper()
	data, err := os.ReadFile(s.gitSpec("flock", workers))
	if err != nil {
		s.t.Fatal(err)
	}
	commit := s.git.Commit(gittest.Branch, map[string]string{flockPath + "eksa-cluster.yaml": string(data), flockPath + "kustomization.yaml": "resources: [eksa-cluster.yaml]\n"})
	s.mustHere("kubectl", "--kubeconfig", s.second(), "annotate", "--overwrite", "gitrepository", "flux-system", "--namespace=flux-system", "reconcile.fluxcd.io/requestedAt="+commit)
}

// inGit returns a file of the newest commit, or "".
func (s *story) inGit(file string) string {
	s.t.Helper()
	if s.git.Git("ls-tree", "--name-only", gittest.Branch, file) == "" {
		return ""
	}
	return s.git.File(gittest.Branch, file)
}

// onSecond returns a field of an object on the management cluster with GitOps, or "".
func (s *story) onSecond(object, path string) string {
	s.t.Helper()
	return s.must("kubectl", "--kubeconfig", s.second(), "get", "--ignore-not-found", "--output=jsonpath="+path, object).stdout
}

// testClusterInGit creates a workload cluster by commit, adds a worker by command, and removes it
// by commit.
func testClusterInGit(t *testing.T, s *story) {
	before := s.countResources()
	// Who writes to the repository gets root on machines of this host.
	s.mustHere("kubectl", "--kubeconfig", s.second(), "annotate", "secret", "local-metal", "--namespace=eksa-system", "clusters.anywhere.eks.amazonaws.com/credentials-namespaces=default")
	s.commitFlock(0)
	s.await("the commit makes a cluster", func() bool {
		return s.onSecond(flock, `{.status.conditions[?(@.type=="Ready")].status}`) == "True"
	})
	r := s.mustHere("upgrade", "cluster", "-f", s.gitSpec("flock", 1), "-k", s.second())
	if !strings.Contains(r.stderr, "Flux has applied the cluster's files by commit") {
		t.Errorf("the upgrade says nothing about Git:\n%s", r.stderr)
	}
	if spec := s.inGit(flockPath + "eksa-cluster.yaml"); !strings.Contains(spec, "count: 1") {
		t.Errorf("Git has another spec:\n%s", spec)
	}
	if has := s.countResources(); has != [2]int{before[0] + 2, before[1] + 1} {
		t.Errorf("there were %v machines and addresses, and now %v", before, has)
	}
	s.commitFlock(0)
	s.await("the commit removes the worker", func() bool { return s.countResources() == [2]int{before[0] + 1, before[1] + 1} })
	s.await("the cluster is ready", func() bool {
		return s.onSecond(flock, `{.status.conditions[?(@.type=="Ready")].status}`) == "True"
	})
}

// testClustersLeaveGit deletes both clusters by command.
func testClustersLeaveGit(t *testing.T, s *story) {
	s.mustHere("delete", "cluster", "flock", "-n", "default", "-k", s.second(), "--yes")
	if spec := s.inGit(flockPath + "eksa-cluster.yaml"); spec != "" {
		t.Errorf("Git still has the workload cluster:\n%s", spec)
	}
	s.mustHere("delete", "cluster", "-f", s.gitSpec("second", 0), "--yes")
	s.noBootstrap("second")
	if spec := s.inGit(secondPath + "eksa-system/eksa-cluster.yaml"); spec != "" {
		t.Errorf("Git still has the management cluster:\n%s", spec)
	}
	if has := s.countResources(); has != s.others {
		t.Errorf("there were %v machines and addresses, and now %v", s.others, has)
	}
}
