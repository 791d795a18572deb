// Package kubetest provides tests with a real API server: etcd and kube-apiserver from Drover's own
// Kubernetes binary.
//
// A test package has one server, which the first test that needs it starts and Main stops; tests
// use separate namespaces. Nothing is faked or left behind: the children exit with the test
// process, even if it is killed. Start with Main and Shared.
package kubetest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/kube"
)

// Patience is how long tests wait for what takes seconds on a free machine. It only tells a test
// that hangs from one that is slow, so it is long.
const Patience = 5 * time.Minute

// startTimeout covers a loaded machine; a free one needs three seconds.
const startTimeout = 3 * time.Minute

// shared is the server of this test package.
var shared struct {
	sync.Mutex
	server *Server
	err    error
}

// Main runs the tests of a package and then stops its server. It discards the logs of controllers
// that run in the test process. Call it from TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }
func Main(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.Stop()
	}
	return code
}

// Shared returns the package's server, with Drover's API installed as opts say. The options of the
// first caller count.
func Shared(t testing.TB, opts install.Options) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = startInstalled(opts)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// SharedWithoutWebhooks returns the package's server without the admission webhooks, for tests of
// reconcilers without a manager to serve them.
func SharedWithoutWebhooks(t testing.TB) *Server {
	t.Helper()
	server := Shared(t, install.Options{})
	hooks := server.Clientset(t).AdmissionregistrationV1()
	for _, err := range []error{
		hooks.ValidatingWebhookConfigurations().Delete(t.Context(), config.ValidatingWebhooks, metav1.DeleteOptions{}),
		hooks.MutatingWebhookConfigurations().Delete(t.Context(), config.MutatingWebhooks, metav1.DeleteOptions{}),
	} {
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	return server
}

func startInstalled(opts install.Options) (*Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s, err := start(ctx)
	if err != nil {
		return nil, err
	}
	if err := install.Apply(ctx, s.Config, opts); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Start returns an empty server for one test, for tests of installation.
func Start(t testing.TB) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	s, err := start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Namespace creates a namespace for one test. It is not deleted, since no controller would complete
// that; it disappears with the server.
func (s *Server) Namespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	created, err := s.Clientset(t).CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return created.Name
}

// Clientset returns an administrator's client for built-in kinds.
func (s *Server) Clientset(t testing.TB) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Server is a running API server with its etcd.
type Server struct {
	// Config has administrator privileges.
	Config *rest.Config
	// Kube is the binary that the server runs from; tests can use its kubectl.
	Kube kube.Binary
	// Etcd is the URL of its etcd, for tests of what a killed API server leaves there.
	Etcd string

	dir      string
	children []*child
}

// Stop stops the processes, etcd last, and removes their files.
func (s *Server) Stop() {
	for i := len(s.children) - 1; i >= 0; i-- {
		s.children[i].stop()
	}
	os.RemoveAll(s.dir)
}

// Run starts an empty server outside a test, for example for a benchmark. The caller stops it.
func Run(ctx context.Context) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return start(ctx)
}

func start(ctx context.Context) (*Server, error) {
	binary, err := kube.Find(kube.FindOptions{})
	if err != nil {
		return nil, fmt.Errorf("tests need a Kubernetes binary: %w", err)
	}
	dir, err := os.MkdirTemp("", "kubetest-")
	if err != nil {
		return nil, err
	}
	s := &Server{Kube: binary, dir: dir}
	if err := s.run(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("starting an API server: %w", err)
	}
	return s, nil
}
