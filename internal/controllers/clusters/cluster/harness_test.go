package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/controllers/clusters/capacity"
	"github.com/drover-dev/drover/internal/controllers/clusters/measure"
	"github.com/drover-dev/drover/internal/controllers/clusters/records"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is an API server, and a controller that tests call directly.
type world struct {
	*testing.T
	client.Client

	c      *Controller
	ns     string
	events *record.FakeRecorder
	// capacity is unlimited unless a test changes it.
	capacity *fakeCapacity
}

// fakeCapacity answers what tests specify, and counts questions.
type fakeCapacity struct {
	shortage *capacity.Shortage
	err      error
	asked    int
}

func (f *fakeCapacity) Admit(context.Context, *spec.Config) (*capacity.Shortage, error) {
	f.asked++
	return f.shortage, f.err
}

// plainSecrets reads from the API server each time.
type plainSecrets struct{ client.Reader }

func (p plainSecrets) Data(ctx context.Context, _ string, key client.ObjectKey) (map[string][]byte, error) {
	s := &corev1.Secret{}
	err := p.Get(ctx, key, s)
	return s.Data, err
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, clusterv1.AddToScheme, controlplanev1.AddToScheme, bootstrapv1.AddToScheme, infrav1.AddToScheme,
		addonsv1.AddToScheme, anywherev1.AddToScheme, droverv1.AddToScheme, packagesv1.AddToScheme, etcdv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	figures, err := measure.NewReporter(prometheus.NewRegistry(), c)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, Client: c, ns: server.Namespace(t), events: record.NewFakeRecorder(1000), capacity: &fakeCapacity{}}
	w.c = &Controller{
		Client: c, Live: c, Secrets: plainSecrets{c}, Metadata: c, Access: c, Version: version.ForMinor, Charts: "oci://registry.example.com/charts", CNIVersion: "0.1.0",
		Capacity: w.capacity, Events: w.events, Clock: clocktesting.NewFakePassiveClock(noon), Records: &records.Recorder{Client: c, Live: c}, Figures: figures,
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: anywherev1.SystemNamespace, Name: anywherev1.LocalCredentials,
			Annotations: map[string]string{anywherev1.CredentialsNamespacesAnnotation: anywherev1.AllNamespaces},
		}, StringData: map[string]string{projectKey: "p1"},
	}
	if err := client.IgnoreAlreadyExists(c.Create(t.Context(), secret)); err != nil {
		t.Fatal(err)
	}
	return w
}

const manifests = `
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata: {name: NAME}
spec: {}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata: {name: NAME, annotations: {drover.dev/created-by: developer}}
spec:
  kubernetesVersion: "1.36"
  management: false
  controlPlaneConfiguration: {count: 1}
  workerNodeGroupConfigurations:
  - {name: md-0, count: 1}
  - {name: extra, count: 2}
  datacenterRef: {kind: DockerDatacenterConfig, name: NAME}
  clusterNetwork:
    cniConfig: {cilium: {}}
    pods: {cidrBlocks: [192.168.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}`

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// make creates a cluster with its config.
func (w *world) make(name string) {
	w.Helper()
	for _, text := range strings.Split(strings.ReplaceAll(manifests, "NAME", name), "\n---\n") {
		o := &unstructured.Unstructured{}
		w.must(yaml.Unmarshal([]byte(text), &o.Object))
		o.SetNamespace(w.ns)
		w.must(w.Create(w.Context(), o))
	}
}

// reconcile runs the controller once.
func (w *world) reconcile(name string) {
	w.Helper()
	if _, err := w.c.Reconcile(w.Context(), w.request(name)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.ns, Name: name}}
}

func (w *world) cluster(name string) *anywherev1.Cluster {
	w.Helper()
	c := &anywherev1.Cluster{}
	w.must(w.Get(w.Context(), w.request(name).NamespacedName, c))
	return c
}

func (w *world) change(name string, edit func(*anywherev1.Cluster)) {
	w.Helper()
	c := w.cluster(name)
	edit(c)
	w.must(w.Update(w.Context(), c))
}

// kubeconfig creates the kubeconfig of a cluster as its control plane does.
func (w *world) kubeconfig(name, value string) *corev1.Secret {
	w.Helper()
	plane := &controlplanev1.KubeadmControlPlane{}
	w.must(w.Get(w.Context(), system(name), plane))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name + "-kubeconfig"}, Data: map[string][]byte{"value": []byte(value)}}
	w.must(controllerutil.SetControllerReference(plane, secret, w.Scheme()))
	w.must(w.Create(w.Context(), secret))
	return secret
}

// failure returns the failure in a Cluster's status.
func (w *world) failure(name string) string {
	w.Helper()
	s := w.cluster(name).Status
	if s.FailureReason == nil {
		return ""
	}
	return string(*s.FailureReason) + ": " + *s.FailureMessage
}

// objects returns the objects of a cluster with their versions.
func (w *world) objects(name string) map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{
		&clusterv1.ClusterList{}, &infrav1.PacketClusterList{}, &controlplanev1.KubeadmControlPlaneList{}, &clusterv1.MachineDeploymentList{},
		&clusterv1.MachineHealthCheckList{}, &infrav1.PacketMachineTemplateList{}, &bootstrapv1.KubeadmConfigTemplateList{}, &addonsv1.HelmChartProxyList{},
		&etcdv1.EtcdadmClusterList{}, &corev1.SecretList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		labels := build.Labels(&metav1.ObjectMeta{Name: name, Namespace: w.ns})
		w.must(w.List(w.Context(), list, client.MatchingLabels(labels)))
		w.must(eachItem(list, func(o client.Object) {
			out[fmt.Sprintf("%s %s", kindOf(o, w.Scheme()), o.GetName())] = o.GetResourceVersion()
		}))
	}
	return out
}

func (w *world) names(name string) []string {
	w.Helper()
	return sortedKeys(w.objects(name))
}

// takeEvents returns the events since the last call.
func (w *world) takeEvents() []string {
	var out []string
	for {
		select {
		case e := <-w.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}
