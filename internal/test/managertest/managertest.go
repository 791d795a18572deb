// Package managertest runs the whole manager as a separate process, so that tests can kill it, with
// exactly the privileges that it has in a cluster. The process is the test binary, started again.
// Start with Main.
package managertest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
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

// Command runs the manager with flags. Variables are added to its environment.
func Command(flags []string, variables ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], flags...)
	cmd.Env = append(append(os.Environ(), asManager+"=1"), variables...)
	return cmd
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
