package e2e

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/kube/flux"
	"github.com/drover-dev/drover/internal/test/gittest"
)

const (
	fleetPath = "clusters/mgmt"
	devPath   = fleetPath + "/workload-clusters/dev/"
	badPath   = fleetPath + "/workload-clusters/bad/"

	webhookToken = "0123456789abcdef"
)

// gitFleet is a plane with simulated machines, and the Git repository of its clusters.
type gitFleet struct {
	*plane
	server *gittest.HTTPS
	// work is a clone.
	work string
}

func newGitFleet(t *testing.T) *gitFleet {
	t.Helper()
	f := &gitFleet{plane: newPlane(t), server: gittest.NewHTTPS(t), work: t.TempDir()}
	f.serveMetal()
	repository := f.server.Create("fleet.git")
	repository.Commit(gittest.Branch, map[string]string{"README.md": "The fleet\n"})
	gittest.Run(t, f.work, "clone", "--quiet", repository.Dir, ".")
	return f
}

// serveMetal starts metal, whose simulated machines take a second instead of half a minute.
func (f *gitFleet) serveMetal() {
	f.t.Helper()
	metal := f.command("metal", "serve", "--driver", "memory", "--speed", "60")
	if err := metal.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = metal.Wait() }) // the purge ends it
	f.t.Cleanup(func() { f.must("metal", "purge", "--yes") })
	f.await("metal runs", func() bool { return f.drover("metal", "status").code == 0 })
}

// in returns the fleet for a subtest.
func (f *gitFleet) in(t *testing.T) *gitFleet {
	out := *f
	out.plane = &plane{t: t, home: f.home}
	return &out
}

// push commits changed files and makes Flux fetch them. An empty file is removed.
func (f *gitFleet) push(files map[string]string) {
	f.t.Helper()
	f.write(files)
	gittest.Run(f.t, f.work, "commit", "--quiet", "--message=change")
	gittest.Run(f.t, f.work, "push", "--quiet", "origin", "HEAD:"+gittest.Branch)
	commit := gittest.Run(f.t, f.work, "rev-parse", "HEAD")
	f.drover("kubectl", "annotate", "--overwrite", "gitrepository", "flux-system", "--namespace=flux-system", "reconcile.fluxcd.io/requestedAt="+commit)
}

// write changes files of the clone.
func (f *gitFleet) write(files map[string]string) {
	f.t.Helper()
	for name, content := range files {
		path := filepath.Join(f.work, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil && content == "" {
			err = os.Remove(path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	gittest.Run(f.t, f.work, "add", "--all")
}

// announce sends a push webhook, as a Git server does.
func (f *gitFleet) announce() {
	f.t.Helper()
	request, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.status().GitWebhook, strings.NewReader("{}"))
	if err != nil {
		f.t.Fatal(err)
	}
	request.Header.Set("X-Gitlab-Token", webhookToken)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		f.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusAccepted {
		f.t.Errorf("the webhook is answered with %s", response.Status)
	}
}

// teamSpec is a cluster of team-a.
func teamSpec(name string, workers int) string {
	return fmt.Sprintf(`apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata: {name: %[1]s, namespace: team-a}
spec:
  kubernetesVersion: "1.36"
  management: false
  controlPlaneConfiguration: {count: 1}
  workerNodeGroupConfigurations: [{name: md-0, count: %[2]d}]
  clusterNetwork:
    pods: {cidrBlocks: [192.168.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}
  datacenterRef: {kind: DockerDatacenterConfig, name: %[1]s}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata: {name: %[1]s, namespace: team-a}
spec: {}
`, name, workers)
}

// connect opens the repository, local machines and add-ons to namespace team-a. The plane runs
// without Flux until then.
func (f *gitFleet) connect() {
	f.t.Helper()
	f.apply(fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: team-a}
---
apiVersion: v1
kind: Namespace
metadata: {name: flux-system}
---
apiVersion: v1
kind: Secret
metadata: {name: git-webhook, namespace: flux-system}
stringData: {token: %[7]s}
---
apiVersion: v1
kind: Secret
metadata:
  name: flux-system
  namespace: flux-system
  annotations: {gitops.drover.dev/url: %[1]q, gitops.drover.dev/paths: %[5]s, clusters.anywhere.eks.amazonaws.com/credentials-namespaces: team-a}
stringData: {username: %[2]s, password: %[3]s, ca.crt: %[4]q}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: add-ons, namespace: team-a}
rules:
- apiGroups: [addons.cluster.x-k8s.io]
  resources: [helmchartproxies]
  verbs: ["*"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: add-ons, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: add-ons}
subjects: [{kind: ServiceAccount, name: drover-gitops, namespace: team-a}]
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: FluxConfig
metadata: {name: fleet, namespace: team-a}
spec: {clusterConfigPath: %[5]s, branch: %[6]s, git: {repositoryUrl: %[1]q}}
`, f.server.URL("fleet.git"), gittest.Username, gittest.Password, f.server.CA, fleetPath, gittest.Branch, webhookToken))
	f.must("kubectl", "annotate", "--overwrite", "secret", "local-metal", "--namespace=eksa-system", "clusters.anywhere.eks.amazonaws.com/credentials-namespaces=team-a")
}

// get returns a field of an object in team-a, or "".
func (f *gitFleet) get(object, path string) string {
	f.t.Helper()
	return f.must("kubectl", "get", "--namespace=team-a", "--ignore-not-found", "--output=jsonpath="+path, object).stdout
}

// applied returns the reason and the message of the condition that tells whether clusters are
// applied.
func (f *gitFleet) applied() string {
	f.t.Helper()
	return f.get("fluxconfig/fleet", `{.status.conditions[?(@.type=="ClustersApplied")]['reason','message']}`)
}

const devCluster = "clusters.anywhere.eks.amazonaws.com/dev"

// TestFleetInGit follows a cluster from its first commit to its confirmed removal, and another one
// that commands create, scale and delete.
func TestFleetInGit(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a plane with simulated machines, and needs the Flux controllers")
	}
	t.Parallel()
	f := newGitFleet(t)
	f.must("up", "--metal", "memory")
	for _, step := range []struct {
		name string
		run  func(*gitFleet)
	}{
		{"a commit creates a cluster, beside a spec that is rejected", testFleetCreate},
		{"an edit scales it", testFleetScale},
		{"a force push is followed", testFleetForcePush},
		{"its removal waits for confirmation", testFleetRemove},
		{"a confirmed removal deletes it", testFleetConfirm},
		{"a creator without Git credentials uses commands", testFleetCommands},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(f.in(t)) }) {
			t.Log(f.drover("kubectl", "get", "fluxconfigs,kustomizations,gitrepositories,clusters.anywhere.eks.amazonaws.com", "-A", "-o", "yaml").stdout)
			return
		}
	}
}

func testFleetCreate(f *gitFleet) {
	if f.status().component(flux.Source().Name).State != "" {
		f.t.Error("Flux runs before somebody needs it")
	}
	f.connect()
	f.await("the plane starts Flux", func() bool { return f.status().GitWebhook != "" })
	f.push(map[string]string{
		devPath + "eksa-cluster.yaml": teamSpec("dev", 1), devPath + "kustomization.yaml": "resources: [eksa-cluster.yaml]\n",
		devPath + "addons/metrics.yaml": metricsAddOn,
		badPath + "eksa-cluster.yaml":   strings.Replace(teamSpec("bad", 1), `"1.36"`, `"1.2"`, 1), badPath + "kustomization.yaml": "resources: [eksa-cluster.yaml]\n",
	})
	f.await("Flux creates the cluster", func() bool { return f.get(devCluster, "{.metadata.name}") == "dev" })
	f.await("the other spec is reported", func() bool { return strings.Contains(f.applied(), "Rejected") && strings.Contains(f.applied(), "bad") })
	if by := f.get(devCluster, `{.metadata.annotations.drover\.dev/created-by}`); by != "system:serviceaccount:team-a:drover-gitops" {
		f.t.Errorf("the cluster was created by %q", by)
	}
	f.await("its control plane is available", func() bool {
		return f.get(devCluster, `{.status.conditions[?(@.type=="ControlPlaneInitialized")].status}`) == "True"
	})
	f.await("its add-ons are applied", func() bool { return f.get("helmchartproxy/metrics", "{.metadata.name}") == "metrics" })
}

// metricsAddOn selects no cluster.
const metricsAddOn = `apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: metrics, namespace: team-a}
spec:
  clusterSelector: {matchLabels: {metrics: "yes"}}
  repoURL: https://charts.example.com/metrics
  chartName: metrics-server
  namespace: kube-system
`

// testFleetForcePush replaces the newest commit by another one.
func testFleetForcePush(f *gitFleet) {
	f.write(map[string]string{devPath + "eksa-cluster.yaml": teamSpec("dev", 3)})
	gittest.Run(f.t, f.work, "commit", "--quiet", "--amend", "--no-edit")
	gittest.Run(f.t, f.work, "push", "--quiet", "--force", "origin", "HEAD:"+gittest.Branch)
	f.announce()
	f.await("the cluster has a third worker", func() bool { return f.get(devCluster, "{.spec.workerNodeGroupConfigurations[0].count}") == "3" })
	f.await("everything is applied", func() bool { return strings.HasPrefix(f.applied(), "Applied") })
}

func testFleetScale(f *gitFleet) {
	f.push(map[string]string{devPath + "eksa-cluster.yaml": teamSpec("dev", 2), devPath + "addons/metrics.yaml": "", badPath + "eksa-cluster.yaml": "", badPath + "kustomization.yaml": ""})
	f.await("the cluster has another worker", func() bool { return f.get(devCluster, "{.spec.workerNodeGroupConfigurations[0].count}") == "2" })
	f.await("the add-on is pruned", func() bool { return f.get("helmchartproxy/metrics", "{.metadata.name}") == "" })
	f.await("everything is applied", func() bool { return strings.HasPrefix(f.applied(), "Applied") })
}

// testFleetRemove leaves the directory in place, so that Flux prunes by itself.
func testFleetRemove(f *gitFleet) {
	f.push(map[string]string{devPath + "eksa-cluster.yaml": "", devPath + "kustomization.yaml": "resources: []\n"})
	f.await("the removal waits", func() bool { return strings.HasPrefix(f.applied(), "RemovalUnconfirmed") })
	// The source keeps its revision, so that Flux acts when it is asked, or after its interval.
	f.must("kubectl", "annotate", "--overwrite", "kustomization", "dev", "--namespace=team-a", "reconcile.fluxcd.io/requestedAt=now")
	f.await("Flux has tried to prune the cluster", func() bool {
		message := f.get("kustomization/dev", `{.status.conditions[?(@.type=="Ready")].message}`)
		return strings.Contains(message, "drover gitops confirm dev")
	})
	if got := f.get(devCluster, "{.metadata.name} {.metadata.deletionTimestamp}"); got != "dev " {
		f.t.Errorf("the cluster is %q", got)
	}
	if got := f.get("dockerdatacenterconfig/dev", "{.metadata.name}"); got != "dev" {
		f.t.Error("its config was deleted")
	}
}

func testFleetConfirm(f *gitFleet) {
	f.must("kubectl", "annotate", "--namespace=team-a", devCluster, "gitops.drover.dev/removal=confirmed")
	f.await("the cluster is deleted", func() bool { return f.get(devCluster, "{.metadata.name}") == "" })
	f.await("nothing is left to apply", func() bool { return f.get("kustomization/dev", "{.metadata.name}") == "" })
}

// testFleetCommands creates, scales and deletes a cluster with commands, which go through Git.
func testFleetCommands(f *gitFleet) {
	dir := f.t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			f.t.Fatal(err)
		}
		return file
	}
	creator := write("creator.kubeconfig", f.must("create", "user", "creator", "--namespace=team-a", "--local-machines").stdout)
	run := func(args ...string) {
		f.t.Helper()
		cmd := f.command(append(args, "--kubeconfig", creator)...)
		cmd.Dir = dir
		if r := f.run(cmd); r.code != 0 {
			f.t.Fatalf("drover %s: code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
		}
	}
	run("create", "cluster", "-f", write("cmd.yaml", f.referring(teamSpec("cmd", 1))))
	if _, err := os.Stat(filepath.Join(dir, "cmd", "cmd-eks-a-cluster.kubeconfig")); err != nil {
		f.t.Errorf("who requested the cluster has no kubeconfig: %v", err)
	}
	run("upgrade", "cluster", "-f", write("cmd.yaml", f.referring(teamSpec("cmd", 2))))
	if spec := f.inGit("workload-clusters/cmd/eksa-cluster.yaml"); !strings.Contains(spec, "count: 2") {
		f.t.Errorf("Git has another spec:\n%s", spec)
	}
	run("delete", "cluster", "cmd", "--namespace=team-a", "--yes")
	if spec := f.inGit("workload-clusters/cmd/eksa-cluster.yaml"); spec != "" {
		f.t.Errorf("Git still has the spec:\n%s", spec)
	}
	if got := f.get("fluxconfig/fleet", "{.metadata.name}"); got != "fleet" {
		f.t.Error("the FluxConfig of the namespace was deleted with its last cluster")
	}
	if log := gittest.Run(f.t, f.work, "log", "--format=%B", "origin/"+gittest.Branch); !strings.Contains(log, "Drover-On-Behalf-Of: system:serviceaccount:team-a:creator") {
		f.t.Errorf("no commit names the creator:\n%s", log)
	}
}

// referring returns a spec that refers to the repository, with the defaults that the FluxConfig of
// the namespace leaves out.
func (f *gitFleet) referring(spec string) string {
	spec = strings.Replace(spec, "spec:\n", "spec:\n  gitOpsRef: {kind: FluxConfig, name: fleet}\n", 1)
	return spec + fmt.Sprintf(`---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: FluxConfig
metadata: {name: fleet, namespace: team-a}
spec: {systemNamespace: flux-system, clusterConfigPath: %s, branch: %s, git: {repositoryUrl: %q}}
`, fleetPath, gittest.Branch, f.server.URL("fleet.git"))
}

// inGit returns a file below the path of the fleet in the newest commit, or "".
func (f *gitFleet) inGit(name string) string {
	f.t.Helper()
	gittest.Run(f.t, f.work, "fetch", "--quiet", "origin")
	at := "origin/" + gittest.Branch
	file := fleetPath + "/" + name
	if gittest.Run(f.t, f.work, "ls-tree", "--name-only", at, file) == "" {
		return ""
	}
	return gittest.Run(f.t, f.work, "show", at+":"+file)
}
