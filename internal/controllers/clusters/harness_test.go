package clusters_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/capi"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/managertest"
	"github.com/drover-dev/drover/internal/test/metaltest"
)

func TestMain(m *testing.M) {
	runAsDrover()
	managertest.Main(m, func() {})
}

// plane is the management plane of all tests.
var plane struct {
	sync.Once
	server  *kubetest.Server
	webhook string
}

// world is a management plane with a manager that has only its own privileges, simulated machines,
// and a registry.
type world struct {
	*testing.T
	client.Client

	manager *kubetest.Process
	metal   metaltest.Metal
	ns      string
	// user may only create clusters in the namespace.
	user client.Client
	// charts is the location of the charts of add-ons.
	charts string
}

// userName is the name of the user.
const userName = "developer"

func newWorld(t *testing.T, program managertest.Program) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("a cluster's life takes a minute")
	}
	plane.Do(func() {
		plane.webhook = kubetest.FreeAddress(t)
		plane.server = kubetest.Shared(t, install.Options{WebhookURL: "https://" + plane.webhook})
	})
	if plane.server == nil {
		t.Fatal("the API server did not start")
	}
	w := &world{T: t, Client: newClient(t, plane.server.Config), metal: metaltest.New(t), ns: plane.server.Namespace(t)}
	w.admit()
	w.credentials()
	w.start(program)
	return w
}

// admit grants the user the shipped role of cluster creators.
func (w *world) admit() {
	w.Helper()
	w.must(w.Create(w.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "creators"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "drover-cluster-creator"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: userName}},
	}))
	cfg := rest.CopyConfig(plane.server.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: userName, Groups: []string{"system:authenticated"}}
	w.user = newClient(w, cfg)
}

func newClient(t testing.TB, cfg *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, capi.AddToScheme, etcdv1.AddToScheme, infrav1.AddToScheme, addonsv1.AddToScheme, anywherev1.AddToScheme, droverv1.AddToScheme,
		packagesv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// credentials creates the credentials that only an administrator can read.
func (w *world) credentials() {
	w.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: anywherev1.SystemNamespace, Name: anywherev1.LocalCredentials,
			Annotations: map[string]string{anywherev1.CredentialsNamespacesAnnotation: anywherev1.AllNamespaces},
		},
		StringData: map[string]string{"PACKET_API_KEY": w.metal.Token, "METAL_API_URL": w.metal.URL, "PROJECT_ID": w.metal.Project},
	}
	w.must(w.Create(w.Context(), secret))
	w.Cleanup(func() {
		if err := w.Delete(context.Background(), secret); err != nil {
			w.Error(err)
		}
	})
}

func (w *world) start(program managertest.Program) {
	w.Helper()
	health := kubetest.FreeAddress(w)
	r, charts := managertest.Charts(w)
	pushStages(w, r)
	w.charts = "oci://" + r.Host + "/" + registry.ChartsRepository
	flags := append([]string{
		"--kubeconfig=" + kubetest.Kubeconfig(w, managertest.Identity(w, plane.server)), "--health-addr=" + health, "--metrics-addr=0",
		"--webhook-addr=" + plane.webhook, "--install=false", "--v=3", "--log-format=json", "--kube-api-qps=1000", "--kube-api-burst=2000",
	}, charts...)
	w.manager = managertest.Start(w, program(w, flags))
	w.until("the manager is ready", func() error {
		if !managertest.Ready(health) {
			return fmt.Errorf("not ready")
		}
		return nil
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// until polls until a condition is met.
func (w *world) until(what string, is func() error) {
	w.Helper()
	took := kubetest.Await(w, kubetest.Patience, func() error {
		if err := is(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
	w.Logf("%s after %s", what, took.Round(10*time.Millisecond))
}

func (w *world) cluster(name string) *anywherev1.Cluster {
	w.Helper()
	c := &anywherev1.Cluster{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, c))
	return c
}

// change updates a Cluster and retries conflicts.
func (w *world) change(name string, edit func(*anywherev1.Cluster)) {
	w.Helper()
	w.until("changed", func() error {
		c := w.cluster(name)
		edit(c)
		return w.user.Update(w.Context(), c)
	})
}

// ready waits until a Cluster is ready with its current spec.
func (w *world) ready(name, controlPlanes, workers string) {
	w.Helper()
	w.until(fmt.Sprintf("%s is ready with %s and %s", name, controlPlanes, workers), func() error {
		c := w.cluster(name)
		s := c.Status
		if !meta.IsStatusConditionTrue(s.Conditions, anywherev1.Ready) || s.ReconciledGeneration != c.Generation || s.ControlPlane != controlPlanes || s.Workers != workers {
			return fmt.Errorf("generation %d of %d, %s, %s: %v %v", s.ReconciledGeneration, c.Generation, s.ControlPlane, s.Workers, deref(s.FailureMessage), s.Conditions)
		}
		return nil
	})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
