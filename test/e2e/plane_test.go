package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/test/inputs"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// plane is a home and the drover that uses it.
type plane struct {
	t    *testing.T
	home string
	// env are variables that drover gets in addition to those of the test.
	env []string
}

// in returns the plane for a part of its test.
func (p *plane) in(t *testing.T) *plane {
	q := *p
	q.t = t
	return &q
}

// with returns the plane for commands with other variables.
func (p *plane) with(variables ...string) *plane {
	q := *p
	q.env = slices.Concat(p.env, variables)
	return &q
}

// step is a part of a test that continues where the one before ended.
type step struct {
	name string
	run  func(*testing.T, *plane)
}

// follow runs steps on a plane until one fails.
func (p *plane) follow(steps ...step) {
	p.t.Helper()
	for _, step := range steps {
		if !p.t.Run(step.name, func(t *testing.T) { step.run(t, p.in(t)) }) {
			return
		}
	}
}

// newPlane creates a home that is removed, with all its processes, when t ends.
func newPlane(t *testing.T) *plane {
	t.Helper()
	return planeAt(t, filepath.Join(t.TempDir(), "home"))
}

func planeAt(t *testing.T, home string) *plane {
	t.Helper()
	for _, dir := range []string{"../../kube", "../../hack/build"} {
		inputs.DependOn(t, dir)
	}
	p := &plane{t: t, home: home}
	t.Cleanup(func() {
		if t.Failed() {
			p.showLogs()
		}
		p.drover("down", "--purge")
		if left := processes(home); len(left) > 0 {
			t.Errorf("processes %v outlive their plane", left)
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return p
}

func (p *plane) showLogs() {
	logs, _ := filepath.Glob(filepath.Join(p.home, "logs", "*.log"))
	for _, log := range logs {
		if filepath.Base(log) == "audit.log" {
			continue
		}
		data, _ := os.ReadFile(log)
		p.t.Logf("the end of %s:\n%s", log, data[max(0, len(data)-2000):])
	}
}

// result is the result of a command.
type result struct {
	stdout, stderr string
	code           int
}

// command prepares drover on this home.
func (p *plane) command(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = "drover"
	cmd.Env = append(os.Environ(), "DROVER_HOME="+p.home, "DROVER_METAL_HOME="+p.metalHome(), "DROVER_PASSPHRASE=correct horse")
	cmd.Env = append(cmd.Env, p.env...)
	return cmd
}

// metalHome returns a metal home that no other plane uses.
func (p *plane) metalHome() string { return p.home + "-metal" }

func (p *plane) drover(args ...string) result {
	p.t.Helper()
	return p.run(p.command(args...))
}

func (p *plane) run(cmd *exec.Cmd) result {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("running drover %v: %v", cmd.Args[1:], err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs drover and fails the test on an error.
func (p *plane) must(args ...string) result {
	p.t.Helper()
	r := p.drover(args...)
	if r.code != 0 {
		p.t.Fatalf("drover %s ended with %d:\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r
}

// refused runs drover and expects an error that contains want.
func (p *plane) refused(want string, args ...string) result {
	p.t.Helper()
	r := p.drover(args...)
	if r.code == 0 || !strings.Contains(r.stderr, want) {
		p.t.Errorf("drover %s ended with %d, want an error with %q:\n%s", strings.Join(args, " "), r.code, want, r.stderr)
	}
	return r
}

// status is the tested part of `drover status -o json`.
type status struct {
	Phase      string
	API        string
	GitWebhook string
	Supervisor struct{ PID int }
	Components []component
	Clusters   []struct {
		Name       string
		Conditions []struct{ Type, Status, Message string }
	}
	MemoryBytes int64
}

type component struct {
	Name, State, LastExit, Version string
	PID, Restarts                  int
	MemoryBytes                    int64
	LogTail                        []string
}

func (p *plane) status() status {
	p.t.Helper()
	r := p.drover("status", "-o", "json")
	var s status
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
		p.t.Fatalf("reading status: %v:\n%s%s", err, r.stdout, r.stderr)
	}
	return s
}

func (s status) component(name string) component {
	for _, c := range s.Components {
		if c.Name == name {
			return c
		}
	}
	return component{}
}

// pids returns all processes of the plane, the supervisor first.
func (s status) pids() []int {
	out := []int{s.Supervisor.PID}
	for _, c := range s.Components {
		if c.PID != 0 { // the registry runs in the supervisor
			out = append(out, c.PID)
		}
	}
	return out
}

func kill(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if pid <= 1 {
			t.Fatalf("no process to kill in %v", pids)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatalf("killing %d: %v", pid, err)
		}
	}
}

// awaitReady waits until every component serves.
func (p *plane) awaitReady() {
	p.t.Helper()
	p.await("the plane is ready", func() bool { return p.status().Phase == "Ready" })
}

// await waits until a condition is met. Most conditions run drover, so it asks less and less often.
func (p *plane) await(what string, cond func() bool) {
	p.t.Helper()
	kubetest.Await(p.t, kubetest.Patience, func() error {
		if cond() {
			return nil
		}
		return errors.New("waiting until " + what)
	})
}

func (p *plane) config() *rest.Config {
	p.t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(p.home, "kubeconfig"))
	if err != nil {
		p.t.Fatal(err)
	}
	cfg.QPS, cfg.Burst = -1, -1
	return cfg
}

func (p *plane) kubernetes() kubernetes.Interface {
	p.t.Helper()
	c, err := kubernetes.NewForConfig(p.config())
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// processes returns the processes whose command line contains the home.
func processes(home string) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var out []int
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err == nil && pid != os.Getpid() && bytes.Contains(cmdline, []byte(home)) {
			out = append(out, pid)
		}
	}
	return out
}

func ctx(t *testing.T) context.Context {
	t.Helper()
	c, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return c
}
