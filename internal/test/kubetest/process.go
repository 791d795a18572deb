package kubetest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// raceWarning is how the race detector begins a report.
const raceWarning = "WARNING: DATA RACE"

// Process is a program under test that runs beside the API server.
type Process struct{ child *child }

// StartProcess starts cmd with its output in a file. It ends with the test, and must have no data
// races. If the test failed, its output is shown: all of it with -v, and warnings and errors without.
func StartProcess(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	c, err := newChild(cmd, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatalf("starting %s: %v", cmd.Path, err)
	}
	p := &Process{child: c}
	t.Cleanup(func() {
		p.Stop(t)
		if _, report, found := strings.Cut(p.Log(), raceWarning); found {
			t.Errorf("%s has a data race:%s", cmd.Path, report)
		}
		if t.Failed() {
			t.Logf("output of %s:\n%s", strings.Join(cmd.Args, " "), shown(p.Log()))
		}
	})
	return p
}

// StartProcess starts cmd beside the server; it ends with the server.
func (s *Server) StartProcess(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	c, err := newChild(cmd, filepath.Join(s.dir, fmt.Sprintf("process-%d.log", len(s.children))))
	if err != nil {
		t.Fatalf("starting %s: %v", cmd.Path, err)
	}
	c.name = filepath.Base(cmd.Path)
	s.children = append(s.children, c)
	return &Process{child: c}
}

// Stop asks the process to end and waits for it. One that does not end fails the test.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	if !p.child.stop() {
		t.Errorf("%s did not end within %s of being asked to", p.child.cmd.Path, grace)
	}
}

// Kill ends the process without asking.
func (p *Process) Kill() {
	_ = p.child.cmd.Process.Kill()
	<-p.child.done
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.child.done }

// ExitCode is valid after Done.
func (p *Process) ExitCode() int { return p.child.cmd.ProcessState.ExitCode() }

// Log returns what the process wrote so far.
func (p *Process) Log() string {
	data, _ := os.ReadFile(p.child.log)
	return string(data)
}

// lastLines is how much of a process' output is shown without being asked for.
const lastLines = 20

// shown is the part of an output that helps to see why a test failed.
func shown(output string) string {
	if testing.Verbose() {
		return output
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(output), "\n"), func(line string) bool {
		return strings.Contains(line, `"level":"INFO"`) || strings.Contains(line, " INFO ")
	})
	if more := len(lines) - lastLines; more > 0 {
		lines = append([]string{fmt.Sprintf("(%d lines more with -v)", more)}, lines[more:]...)
	}
	return strings.Join(lines, "\n")
}

// Kubeconfig returns an administrator's kubeconfig file that stays as long as the server.
func (s *Server) Kubeconfig(t testing.TB) string {
	t.Helper()
	return writeKubeconfig(t, filepath.Join(s.dir, "kubeconfig"), s.Config)
}

// Kubeconfig writes cfg to a file, for programs that are given one.
func Kubeconfig(t testing.TB, cfg *rest.Config) string {
	t.Helper()
	return writeKubeconfig(t, filepath.Join(t.TempDir(), "kubeconfig"), cfg)
}

func writeKubeconfig(t testing.TB, file string, cfg *rest.Config) string {
	t.Helper()
	if err := clientcmd.WriteToFile(*AsKubeconfig(cfg), file); err != nil {
		t.Fatal(err)
	}
	return file
}

// AsKubeconfig returns cfg, which must be that of a Server, in the form of a kubeconfig.
func AsKubeconfig(cfg *rest.Config) *clientcmdapi.Config {
	const name = "kubetest"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: cfg.BearerToken}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	return c
}

// FreeAddress returns a loopback address that nothing listens on.
func FreeAddress(t testing.TB) string {
	t.Helper()
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
}
