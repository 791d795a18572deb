// Package managertest runs the whole manager as a separate process, so that tests can kill it, with
// exactly the privileges that it has in a cluster. Start with Main.
//
// The race detector makes a manager several times slower. One test of each kind runs with it
// (Checked); those that repeat the same with faults and kills run the program (Command).
package managertest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/config"
	climanager "github.com/drover-dev/drover/internal/cli/manager"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/races"
)

// asManager makes the test binary behave as the manager.
const asManager = "DROVER_TEST_AS_MANAGER"

// day is the lifetime of a token, longer than any test.
const day = 24 * 60 * 60

// Main is called by TestMain of a package. It never returns; it calls end after all tests.
func Main(m *testing.M, end func()) {
	if os.Getenv(asManager) != "" {
		cmd := climanager.NewCommand()
		cmd.SetArgs(os.Args[1:])
		if err := cmd.ExecuteContext(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "manager:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	forget, err := races.Suppress()
	if err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
	code := kubetest.Main(m)
	end()
	forget()
	if err := os.RemoveAll(program.dir); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
	}
	os.Exit(code)
}

// Identity is the manager's service account, which has exactly the shipped roles.
func Identity(t testing.TB, server *kubetest.Server) *rest.Config {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](day)}}
	accounts := server.Clientset(t).CoreV1().ServiceAccounts(config.Namespace)
	made, err := accounts.CreateToken(t.Context(), config.ServiceAccount, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	identity := rest.AnonymousClientConfig(server.Config)
	identity.BearerToken = made.Status.Token
	return identity
}

// Program prepares a manager with flags and additional variables of the environment.
type Program func(t testing.TB, flags []string, variables ...string) *exec.Cmd

// Command is the program that users get.
func Command(t testing.TB, flags []string, variables ...string) *exec.Cmd {
	t.Helper()
	program.Do(func() { program.path, program.err = build() })
	if program.err != nil {
		t.Fatal(program.err)
	}
	cmd := exec.Command(program.path, flags...)
	cmd.Env = append(os.Environ(), variables...)
	return cmd
}

// Checked has the race detector if the test has it: it is the test binary, started again.
func Checked(t testing.TB, flags []string, variables ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], flags...)
	cmd.Env = append(append(os.Environ(), asManager+"=1"), variables...)
	return cmd
}

// program is the manager without the race detector.
var program struct {
	sync.Once
	dir, path string
	err       error
}

// build compiles the program. The go command caches what it runs, but not what it builds, so that
// only the first package that needs it has to wait for the linker.
func build() (string, error) {
	var err error
	if program.dir, err = os.MkdirTemp("", "manager-"); err != nil {
		return "", err
	}
	path := filepath.Join(program.dir, "manager")
	cmd := exec.Command("go", "run", "-ldflags=-s -w", "-exec=cp", "github.com/drover-dev/drover/cmd/manager", path)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as the Makefile builds it
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the manager: %w\n%s", err, out)
	}
	return path, nil
}

// Start starts a manager. The test fails if its roles deny a request. A workload cluster may deny
// requests of service accounts of tests, which the manager impersonates there.
func Start(t testing.TB, cmd *exec.Cmd) *kubetest.Process {
	t.Helper()
	process := kubetest.StartProcess(t, cmd)
	t.Cleanup(func() {
		for line := range strings.Lines(process.Log()) {
			if strings.Contains(line, "forbidden") && !strings.Contains(line, `User \"system:serviceaccount:test-`) {
				t.Errorf("the manager's roles do not suffice: %s", line)
				return
			}
		}
	})
	return process
}

// Ready reports whether the manager is ready.
func Ready(health string) bool {
	response, err := http.Get("http://" + health + "/readyz")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}
