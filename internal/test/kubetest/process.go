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

// raceWarning is the start of a report of the race detector.
const raceWarning = "WARNING: DATA RACE"

// Process is a program under test that runs beside the API server.
type Process struct{ child *child }

// StartProcess starts cmd with its output in a file. It stops with the test and must have no data
// races. If the test fails, its output is shown: all of it with -v, otherwise warnings and errors.
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

// StartProcess starts cmd beside the server and stops it with the server.
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

// Stop terminates the process and waits for it. The test fails if it does not exit.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	if !p.child.stop() {
		t.Errorf("%s did not exit within %s of SIGTERM", p.child.cmd.Path, grace)
	}
}

// Kill kills the process.
func (p *Process) Kill() {
	_ = p.child.cmd.Process.Kill()
	<-p.child.done
}

// Signal sends a signal to the process.
func (p *Process) Signal(t testing.TB, signal os.Signal) {
	t.Helper()
	if err := p.child.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// Done is closed when the process has exited.
func (p *Process) Done() <-chan struct{} { return p.child.done }

// ExitCode is valid after Done.
func (p *Process) ExitCode() int { return p.child.cmd.ProcessState.ExitCode() }

// Log returns the output of the process so far.
func (p *Process) Log() string {
	data, _ := os.ReadFile(p.child.log)
	return string(data)
}

// lastLines is the number of output lines shown without -v.
const lastLines = 20

// shown returns the part of an output that helps to diagnose a failure.
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

// Kubeconfig returns an administrator's kubeconfig file that exists as long as the server.
func (s *Server) Kubeconfig(t testing.TB) string {
	t.Helper()
	return writeKubeconfig(t, filepath.Join(s.dir, "kubeconfig"), s.Config)
}

// Kubeconfig writes cfg to a file for other programs.
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

// AsKubeconfig returns cfg, which must be that of a Server, as a kubeconfig.
func AsKubeconfig(cfg *rest.Config) *clientcmdapi.Config {
	const name = "kubetest"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: cfg.BearerToken}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	return c
}

// ExampleKubeconfig returns a kubeconfig for a server that doesn't exist, as Cluster API stores it.
func ExampleKubeconfig(host string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%s:6443", certificate-authority-data: Y2E=}}]
users: [{name: u, user: {client-certificate-data: Y3J0, client-key-data: a2V5}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, host)
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
