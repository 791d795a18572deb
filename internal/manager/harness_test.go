package manager_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/cli"
	"github.com/drover-dev/drover/internal/controllers/capi"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/managertest"
)

// asDrover makes this test binary behave as the whole of drover.
const asDrover = "DROVER_TEST_AS_DROVER"

func TestMain(m *testing.M) {
	if os.Getenv(asDrover) != "" {
		os.Exit(cli.Main())
	}
	managertest.Main(m, faultServer.Stop)
}

// instance is a running manager process.
type instance struct {
	*kubetest.Process
	health, metrics, webhook string
}

// launch starts a manager on free ports, which args can override.
func launch(t testing.TB, kubeconfig string, args ...string) *instance {
	t.Helper()
	i := &instance{health: kubetest.FreeAddress(t), metrics: kubetest.FreeAddress(t), webhook: kubetest.FreeAddress(t)}
	all := append([]string{
		"--kubeconfig=" + kubeconfig, "--health-addr=" + i.health, "--metrics-addr=" + i.metrics, "--insecure-metrics", "--webhook-addr=" + i.webhook,
	}, args...)
	i.Process = kubetest.StartProcess(t, managertest.Command(t, all))
	return i
}

// awaitReady waits for /readyz.
func (i *instance) awaitReady(t testing.TB) {
	t.Helper()
	eventually(t, func() error { return fetch("http://" + i.health + "/readyz?verbose") })
}

// main is the manager that most tests share, on the package's API server.
var main struct {
	sync.Once
	server   *kubetest.Server
	instance *instance
}

// ready returns the shared API server and a ready manager whose webhooks it calls.
func ready(t testing.TB) (*kubetest.Server, *instance) {
	t.Helper()
	main.Do(func() {
		webhook := kubetest.FreeAddress(t)
		main.server = kubetest.Shared(t, install.Options{WebhookURL: "https://" + webhook})
		main.instance = launchShared(t, webhook)
	})
	if main.instance == nil {
		t.Fatal("the shared manager did not start")
	}
	main.instance.awaitReady(t)
	return main.server, main.instance
}

// launchShared is launch for a manager that outlives the test that starts it.
func launchShared(t testing.TB, webhook string) *instance {
	t.Helper()
	i := &instance{health: kubetest.FreeAddress(t), metrics: kubetest.FreeAddress(t), webhook: webhook}
	i.Process = main.server.StartProcess(t, managertest.Checked(t, []string{
		"--kubeconfig=" + main.server.Kubeconfig(t), "--health-addr=" + i.health, "--metrics-addr=" + i.metrics, "--insecure-metrics", "--webhook-addr=" + i.webhook,
		"--install=false", "--v=4",
	}))
	return i
}

// newClient returns a client for all kinds, with the privileges of cfg.
func newClient(t testing.TB, cfg *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := capi.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := infrav1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := etcdv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually retries until f succeeds.
func eventually(t testing.TB, f func() error) {
	t.Helper()
	kubetest.Await(t, kubetest.Patience, f)
}

func fetch(url string) error {
	_, err := get(url, nil)
	return err
}

// get returns the body of a successful response. It doesn't verify certificates; the readiness
// probe does.
func get(url string, header http.Header) (string, error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	req.Header = header
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return string(body), fmt.Errorf("%s: %s: %s", url, resp.Status, strings.TrimSpace(string(body)))
	}
	return string(body), nil
}

// linesWith returns the lines of text that contain word.
func linesWith(text, word string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return !strings.Contains(strings.ToLower(line), word)
	})
}
