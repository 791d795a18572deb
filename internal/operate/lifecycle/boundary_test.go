package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httputil"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/filelock"
	"github.com/drover-dev/drover/internal/base/process"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/workloadtest"
)

// side is an API server behind a proxy that can fail, with simulated controllers.
type side struct {
	t      *testing.T
	config *rest.Config // through the proxy
	client client.WithWatch
	direct kubernetes.Interface
	down   atomic.Bool
	// left is how many writes of the cluster's objects succeed before all requests fail, which
	// calls died; zero is no limit.
	left atomic.Int64
	died func()
}

func newSide(t *testing.T, server *kubetest.Server) *side {
	t.Helper()
	connected, err := inspect.Connect(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	s := &side{t: t, client: connected.Client, direct: server.Clientset(t)}
	s.front(server.Config)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: anywherev1.SystemNamespace}}
	if err := client.IgnoreAlreadyExists(s.client.Create(t.Context(), namespace)); err != nil {
		t.Fatal(err)
	}
	return s
}

// front starts the proxy, which forwards requests or fails them.
func (s *side) front(to *rest.Config) {
	s.t.Helper()
	s.config = workloadtest.Before(s.t, to, func(behind *httputil.ReverseProxy) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.down.Load() {
				http.Error(w, "the server is on fire", http.StatusInternalServerError)
				return
			}
			behind.ServeHTTP(w, r)
			if s.left.Load() > 0 && writesCluster(r) && s.left.Add(-1) == 0 {
				s.down.Store(true)
				s.died()
			}
		})
	})
}

// writesCluster reports whether a request changes an object of a cluster.
func writesCluster(r *http.Request) bool {
	ours := strings.Contains(r.URL.Path, "/namespaces/default/") || strings.Contains(r.URL.Path, "/namespaces/"+anywherev1.SystemNamespace+"/")
	return ours && r.Method != http.MethodGet
}

// kubeconfig writes a kubeconfig that uses the proxy.
func (s *side) kubeconfig(file string) string {
	s.t.Helper()
	if err := clientcmd.WriteToFile(*kubetest.AsKubeconfig(s.config), file); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// simulateControllers simulates the controllers until the test ends. Every cluster gets the given
// kubeconfig.
func (s *side) simulateControllers(into []byte) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			s.playOnce(ctx, into) // A conflict is resolved the next time.
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	s.t.Cleanup(func() { cancel(); <-done })
}

func (s *side) playOnce(ctx context.Context, into []byte) {
	// Webhooks are not served here.
	hooks := s.direct.AdmissionregistrationV1()
	_ = hooks.MutatingWebhookConfigurations().Delete(ctx, config.MutatingWebhooks, metav1.DeleteOptions{})
	_ = hooks.ValidatingWebhookConfigurations().Delete(ctx, config.ValidatingWebhooks, metav1.DeleteOptions{})
	for _, namespace := range []string{config.Namespace, config.FluxNamespace} {
		s.runDeployments(ctx, namespace)
	}
	all := &anywherev1.ClusterList{}
	if s.client.List(ctx, all) != nil {
		return
	}
	for i := range all.Items {
		if c := &all.Items[i]; c.IsPaused() {
			_ = s.provision(ctx, c.Name) // Cluster API doesn't know who else is paused.
		} else {
			_ = s.reconcile(ctx, c, into)
		}
	}
}

// runDeployments marks all Deployments of a namespace as running.
func (s *side) runDeployments(ctx context.Context, namespace string) {
	all, err := s.direct.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range all.Items {
		if d := &all.Items[i]; d.Status.ObservedGeneration < d.Generation {
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas, AvailableReplicas: *d.Spec.Replicas, ReadyReplicas: *d.Spec.Replicas}
			_, _ = s.direct.AppsV1().Deployments(namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
		}
	}
}

// reconcile creates the objects of a cluster and sets its status.
func (s *side) reconcile(ctx context.Context, c *anywherev1.Cluster, into []byte) error {
	children, err := spec.Gather(ctx, s.client, c)
	if err != nil {
		return err
	}
	labels := map[string]string{clusterv1.ClusterNameLabel: c.Name}
	for _, o := range []client.Object{
		&clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: c.Name, Labels: labels},
			Spec:       clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketCluster", Name: c.Name}},
		},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": infrav1.GroupVersion.String(), "kind": "PacketCluster",
			"metadata": map[string]any{"namespace": anywherev1.SystemNamespace, "name": c.Name, "labels": map[string]any{clusterv1.ClusterNameLabel: c.Name}},
			"spec":     map[string]any{"projectID": "p", "metro": "da"},
		}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: c.Name + "-kubeconfig", Labels: labels},
			Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": into},
		},
	} {
		err := s.client.Create(ctx, o)
		if secret, ok := o.(*corev1.Secret); ok && apierrors.IsAlreadyExists(err) {
			err = s.client.Update(ctx, secret) // An earlier test may have left that of its own cluster.
		}
		if client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	if err := s.provision(ctx, c.Name); err != nil {
		return err
	}
	seen, generations := c.Status.DeepCopy(), childGenerations(children)
	if seen.ReconciledGeneration == c.Generation && seen.ChildrenReconciledGeneration == generations {
		return nil
	}
	c.Status.ObservedGeneration, c.Status.ReconciledGeneration, c.Status.ChildrenReconciledGeneration = c.Generation, c.Generation, generations
	for _, kind := range []string{anywherev1.ControlPlaneInitialized, anywherev1.Ready} {
		apimeta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Well", ObservedGeneration: c.Generation})
	}
	return s.client.Status().Update(ctx, c)
}

// provision marks a Cluster API cluster as provisioned, unless it is paused.
func (s *side) provision(ctx context.Context, name string) error {
	c := &clusterv1.Cluster{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name}, c)
	if err != nil || ptr.Deref(c.Spec.Paused, false) || ptr.Deref(c.Status.Initialization.InfrastructureProvisioned, false) {
		return err
	}
	c.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true)}
	apimeta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: "Initialized"})
	return s.client.Status().Update(ctx, c)
}

// planeVariable turns this test program into a background plane with the API server of a
// kubeconfig.
const planeVariable = "LIFECYCLE_TEST_PLANE"

// runAsPlane locks a home as a supervisor does, if the process was started as a plane.
func runAsPlane() {
	i := slices.Index(os.Args, "--home")
	if os.Getenv(planeVariable) == "" || i < 0 {
		return
	}
	h := plane.Home{Dir: os.Args[i+1]}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	lock, err := filelock.Try(filepath.Join(h.Dir, "lock"))
	kubeconfig, readErr := os.ReadFile(os.Getenv(planeVariable))
	err = errors.Join(err, readErr, os.MkdirAll(filepath.Join(h.Dir, "run"), 0o700), os.WriteFile(h.Kubeconfig(), kubeconfig, 0o600),
		writeJSON(filepath.Join(h.Dir, "run", "state.json"), plane.State{Phase: plane.PhaseReady, Supervisor: process.Identify(os.Getpid())}),
		writeJSON(filepath.Join(h.Dir, "home.json"), plane.HomeMeta{Format: 1, Kubernetes: version.Kubernetes}),
		json.NewEncoder(os.NewFile(plane.ProgressFD, "progress")).Encode(plane.Event{Status: plane.AllReady}))
	if err != nil {
		os.Exit(1)
	}
	<-stop
	_ = lock.Close()
	os.Exit(0)
}

func writeJSON(file string, content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}
