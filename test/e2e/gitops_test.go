package e2e

import (
	"crypto/subtle"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/kube/flux"
)

// repository is a Git repository that is served over TLS and requires a password.
type repository struct {
	t      *testing.T
	server *httptest.Server
	work   string // a clone
}

const gitPassword = "correct horse"

func newRepository(t *testing.T) *repository {
	t.Helper()
	core, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatalf("finding git: %v", err)
	}
	dir := t.TempDir()
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(core)), "git-http-backend"), Root: "/",
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(password), []byte(gitPassword)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	r := &repository{t: t, server: server, work: filepath.Join(t.TempDir(), "work")}
	r.git("init", "--quiet", "--bare", "--initial-branch=main", filepath.Join(dir, "fleet.git"))
	r.git("clone", "--quiet", filepath.Join(dir, "fleet.git"), r.work)
	return r
}

// git runs git without the settings of the user and of the host.
func (r *repository) git(args ...string) {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "HOME="+r.t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com")
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// push commits the files, and nothing else, to the main branch.
func (r *repository) push(files map[string]string) {
	r.t.Helper()
	if old, _ := filepath.Glob(filepath.Join(r.work, "*.yaml")); len(old) > 0 {
		r.git(append([]string{"-C", r.work, "rm", "--quiet"}, old...)...)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(r.work, name), []byte(content), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git("-C", r.work, "add", "--all")
	r.git("-C", r.work, "commit", "--quiet", "--message=change")
	r.git("-C", r.work, "push", "--quiet", "origin", "HEAD:main")
}

// manifests makes Flux apply the repository in a namespace, with more fields of the Kustomization.
func (r *repository) manifests(namespace, more string) string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: Secret
metadata: {name: fleet, namespace: %[1]s}
stringData: {username: git, password: %[2]s, ca.crt: %[3]q}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: %[1]s}
spec: {interval: 1h, url: %[4]s/fleet.git, ref: {branch: main}, secretRef: {name: fleet}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: fleet, namespace: %[1]s}
spec: {interval: 1h, retryInterval: 1s, prune: true, sourceRef: {kind: GitRepository, name: fleet}%[5]s}
`, namespace, gitPassword, ca, r.server.URL, more)
}

// configMap is a manifest in the default namespace.
func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\n"
}

// TestCommitsAreAppliedWithGitOps follows commits from a Git server into a plane with Flux.
func TestCommitsAreAppliedWithGitOps(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a plane four times, and needs the Flux controllers")
	}
	t.Parallel()
	p, r := newPlane(t), newRepository(t)
	r.push(map[string]string{
		"kustomization.yaml": "resources: [one.yaml, two.yaml]\n", "one.yaml": configMap("one"), "two.yaml": configMap("two"),
	})
	p.must("up")
	p.must("up", "--gitops") // It starts Flux on the running plane.
	steps := []struct {
		name string
		run  func(*testing.T, *plane, *repository)
	}{
		{"status shows the controllers", testFluxStatus},
		{"a commit becomes objects, and its removal prunes them", testCommit},
		{"a Kustomization without a service account has no privileges", testUnprivileged},
		{"files are private", func(t *testing.T, p *plane, _ *repository) { testPrivateFiles(t, p) }},
		{"a restart keeps the choice, and turning it off keeps objects", testGitOpsOff},
		{"a Flux of somebody else is left alone", testForeignFlux},
	}
	for _, step := range steps {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, &plane{t: t, home: p.home}, r) }) {
			return
		}
	}
}

func testFluxStatus(t *testing.T, p *plane, _ *repository) {
	s := p.status()
	for _, want := range flux.Controllers() {
		if c := s.component(want.Name); c.State != "Ready" || c.PID == 0 || c.Version != want.Version {
			t.Errorf("status of %s = %+v", want, c)
		}
	}
	p.refused("run `drover down` before you turn GitOps off", "up", "--gitops=false")
	p.must("up", "--gitops")
}

// apply applies manifests as the administrator.
func (p *plane) apply(manifests string) {
	p.t.Helper()
	cmd := p.command("kubectl", "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifests)
	if r := p.run(cmd); r.code != 0 {
		p.t.Fatalf("applying manifests ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// configMaps returns the names of those in the default namespace that came from Git.
func (p *plane) configMaps() string {
	p.t.Helper()
	list := p.must("kubectl", "get", "configmap", "--namespace=default", "--selector=kustomize.toolkit.fluxcd.io/name=fleet", "--output=name")
	return strings.Join(strings.Fields(list.stdout), " ")
}

func testCommit(_ *testing.T, p *plane, r *repository) {
	p.apply(r.manifests("flux-system", ", serviceAccountName: kustomize-controller"))
	p.await("the commit is applied", func() bool { return p.configMaps() == "configmap/one configmap/two" })
	r.push(map[string]string{"kustomization.yaml": "resources: [two.yaml]\n", "two.yaml": configMap("two")})
	p.must("kubectl", "annotate", "gitrepository", "fleet", "--namespace=flux-system", "reconcile.fluxcd.io/requestedAt=now")
	p.await("the removed file is pruned", func() bool { return p.configMaps() == "configmap/two" })
}

func testUnprivileged(_ *testing.T, p *plane, r *repository) {
	p.apply(r.manifests("tenant", ""))
	p.await("the Kustomization of the tenant is denied", func() bool {
		message := p.must("kubectl", "get", "kustomization", "fleet", "--namespace=tenant",
			`--output=jsonpath={.status.conditions[?(@.type=="Ready")].message}`).stdout
		return strings.Contains(message, `User "system:serviceaccount:tenant:default" cannot patch`)
	})
}

func testGitOpsOff(t *testing.T, p *plane, _ *repository) {
	p.must("down")
	p.must("up")
	if c := p.status().component(flux.Kustomize().Name); c.State != "Ready" {
		t.Errorf("after a restart: %+v", c)
	}
	p.must("down")
	p.must("up", "--gitops=false")
	if c := p.status().component(flux.Source().Name); c.Name != "" {
		t.Errorf("still running: %+v", c)
	}
	if got := p.configMaps(); got != "configmap/two" {
		t.Errorf("objects from Git: %q", got)
	}
}

func testForeignFlux(t *testing.T, p *plane, _ *repository) {
	const crd = "kustomizations.kustomize.toolkit.fluxcd.io"
	p.must("kubectl", "annotate", "crd", crd, install.HashAnnotation+"-")
	p.must("down")
	if r := p.must("up", "--gitops"); !strings.Contains(r.stderr, crd+" was not installed by Drover") {
		t.Errorf("up does not say why Flux is missing:\n%s", r.stderr)
	}
	if c := p.status().component(flux.Kustomize().Name); c.Name != "" {
		t.Errorf("running beside another Flux: %+v", c)
	}
	if got := p.must("kubectl", "get", "crd", crd, "--output=jsonpath={.metadata.annotations}").stdout; strings.Contains(got, install.HashAnnotation) {
		t.Errorf("the CRD was written: %s", got)
	}
}
