package docs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/drover-dev/drover/internal/kube"
	"github.com/drover-dev/drover/internal/test/inputs"
)

// repository is the root of this module.
const repository = "../.."

// home is a home directory of a user, with the plane and the machines in it.
type home struct {
	dir string
	env []string
}

// newHome makes a home directory. What runs in it is stopped and removed when t ends.
func newHome(t *testing.T) *home {
	t.Helper()
	for _, dir := range []string{"kube", "hack/build"} {
		inputs.DependOn(t, filepath.Join(repository, dir))
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	h := &home{dir: t.TempDir()}
	h.env = []string{
		"HOME=" + h.dir, "XDG_CACHE_HOME=" + cache, "TMPDIR=" + os.TempDir(), "TERM=dumb",
		"PATH=" + programs(t) + string(filepath.ListSeparator) + os.Getenv("PATH"),
	}
	for _, name := range []string{kube.EnvDir, "GOGC"} { // GOGC saves CPU time: see the Makefile
		if value := os.Getenv(name); value != "" {
			h.env = append(h.env, name+"="+value)
		}
	}
	t.Cleanup(func() { h.remove(t) })
	return h
}

// programs returns a directory with clusterctl of the Cluster API version that Drover runs, and
// with the scripts that hidden commands use.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/bin")); err != nil {
		t.Fatal(err)
	}
	// The go command caches what it runs, but not what it builds.
	cmd := exec.Command("go", "run", "-exec=cp", "sigs.k8s.io/cluster-api/cmd/clusterctl", filepath.Join(dir, "clusterctl"))
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building clusterctl: %v\n%s", err, out)
	}
	return dir
}

// session begins a session with the files of the repository that pages refer to.
func (h *home) session(t *testing.T) *session {
	t.Helper()
	s := newSession(t, h.env)
	for _, dir := range []string{"templates", "catalog", "charts"} {
		if err := os.CopyFS(filepath.Join(s.dir, dir), os.DirFS(filepath.Join(repository, dir))); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// must runs a script that is not from a page.
func (h *home) must(t *testing.T, script string) string {
	t.Helper()
	out, code, err := newSession(t, h.env).run(t.Context(), script)
	if code != 0 || err != nil {
		t.Fatalf("%s: exit code %d, error %v:\n%s", script, code, err, out)
	}
	return out
}

// registry returns the address of the plane's registry. Pages show the one of a plane that is
// alone.
func (h *home) registry(t *testing.T) string {
	t.Helper()
	return regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(h.must(t, "drover registry status"))
}

// sweep deletes what a page created on a plane that others use too.
func (h *home) sweep(t *testing.T) {
	t.Helper()
	h.must(t, `kubectl delete clusters.anywhere.eks.amazonaws.com -A --all
kubectl delete clusters.cluster.x-k8s.io -A --all
kubectl delete helmchartproxies -A --all`)
}

// remove stops and removes what runs in the home, and names what is left.
func (h *home) remove(t *testing.T) {
	if t.Failed() {
		h.showLogs(t)
	}
	if len(processes(h.dir)) > 0 {
		cmd := exec.Command("drover", "down", "--purge", "--metal", "--yes")
		cmd.Env = h.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("drover down: %v\n%s", err, out)
		}
	}
	for _, pid := range processes(h.dir) {
		t.Errorf("process %d outlives the page that started it", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// showLogs prints the ends of the logs of the plane and of the metal service.
func (h *home) showLogs(t *testing.T) {
	const end = 2000
	logs, _ := filepath.Glob(filepath.Join(h.dir, ".drover*", "logs", "*.log"))
	for _, log := range logs {
		if filepath.Base(log) == "audit.log" {
			continue
		}
		data, _ := os.ReadFile(log)
		t.Logf("end of %s:\n%s", log, data[max(0, len(data)-end):])
	}
}

// processes returns those whose command line or environment names a directory.
func processes(dir string) []int {
	entries, _ := filepath.Glob("/proc/[0-9]*")
	var out []int
	for _, entry := range entries {
		pid, _ := strconv.Atoi(filepath.Base(entry))
		line, _ := os.ReadFile(filepath.Join(entry, "cmdline"))
		environment, _ := os.ReadFile(filepath.Join(entry, "environ"))
		if pid != os.Getpid() && bytes.Contains(append(line, environment...), []byte(dir)) {
			out = append(out, pid)
		}
	}
	return out
}
