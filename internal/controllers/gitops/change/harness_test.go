package change

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/test/gittest"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is an API server with the API of Flux, a Git server, and a controller that tests call
// directly.
type world struct {
	*testing.T
	client.WithWatch

	c          *Controller
	ns         string
	clock      *clocktesting.FakeClock
	git        *gittest.HTTPS
	repository *gittest.Repository
}

const repositoryName = "fleet.git"

func newWorld(t *testing.T) *world {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	if err := install.ApplyFlux(t.Context(), server.Config, install.Options{}); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, anywherev1.AddToScheme, droverv1.AddToScheme, sourcev1.AddToScheme, kustomizev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, WithWatch: c, ns: server.Namespace(t), clock: clocktesting.NewFakeClock(time.Now()), git: gittest.NewHTTPS(t)}
	w.repository = w.git.Create(repositoryName)
	w.repository.Commit(gittest.Branch, map[string]string{"README.md": "The fleet."})
	w.c = &Controller{Client: c, Secrets: sources.New(c, c), FluxNamespace: server.Namespace(t), ManagementCluster: "mgmt", Clock: w.clock}
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// connect creates what an administrator and the user create: bound credentials and a FluxConfig.
func (w *world) connect() {
	w.Helper()
	w.credentials(w.git.URL(repositoryName), w.ns)
	w.fluxConfig(w.git.URL(repositoryName))
}

// credentials creates the Secret of the Git server, bound to a URL and namespaces.
func (w *world) credentials(url, namespaces string) {
	w.Helper()
	w.must(w.Create(w.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.c.FluxNamespace, Name: anywherev1.GitCredentials, Annotations: map[string]string{
			anywherev1.GitURLAnnotation: url, anywherev1.CredentialsNamespacesAnnotation: namespaces,
		}},
		Data: map[string][]byte{"username": []byte(gittest.Username), "password": []byte(gittest.Password), "ca.crt": w.git.CA},
	}))
}

func (w *world) fluxConfig(url string) {
	w.Helper()
	config := &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "fleet"}}
	config.Spec = anywherev1.FluxConfigSpec{SystemNamespace: w.c.FluxNamespace, ClusterConfigPath: "clusters/mgmt", Git: &anywherev1.GitProviderConfig{RepositoryURL: url}}
	w.must(w.Create(w.Context(), config))
}

// source creates the GitRepository of the repository.
func (w *world) source() {
	w.Helper()
	w.must(w.Create(w.Context(), &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.c.FluxNamespace, Name: anywherev1.GitCredentials},
		Spec:       sourcev1.GitRepositorySpec{URL: w.git.URL(repositoryName), Interval: metav1.Duration{Duration: time.Minute}},
	}))
}

func (w *world) getSource() *sourcev1.GitRepository {
	w.Helper()
	found := &sourcev1.GitRepository{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: w.c.FluxNamespace, Name: anywherev1.GitCredentials}, found))
	return found
}

// applied makes a Kustomization report what it applied, as Flux does.
func (w *world) applied(cluster, revision string) *kustomizev1.Kustomization {
	w.Helper()
	k := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: cluster, Labels: map[string]string{anywherev1.GitClusterLabel: cluster}},
		Spec: kustomizev1.KustomizationSpec{
			Interval: metav1.Duration{Duration: time.Minute}, Prune: true,
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: anywherev1.GitCredentials},
		},
	}
	w.must(w.Create(w.Context(), k))
	k.Status.LastAppliedRevision, k.Status.LastAttemptedRevision = revision, revision
	meta.SetStatusCondition(&k.Status.Conditions, metav1.Condition{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded"})
	w.must(w.Status().Update(w.Context(), k))
	return k
}

const manifests = `
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata: {name: CLUSTER, namespace: NAMESPACE}
spec:
  kubernetesVersion: "1.36"
  managementCluster: {name: mgmt}
  controlPlaneConfiguration: {count: 1}
  workerNodeGroupConfigurations: [{name: md-0, count: 1}]
  datacenterRef: {kind: DockerDatacenterConfig, name: CLUSTER}
  gitOpsRef: {kind: FluxConfig, name: fleet}
  clusterNetwork:
    cniConfig: {cilium: {}}
    pods: {cidrBlocks: [192.168.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata: {name: CLUSTER, namespace: NAMESPACE}
spec: {}`

// write creates a GitChange that writes a cluster, with replacements in its manifests.
func (w *world) write(name, cluster string, replace ...string) {
	w.Helper()
	change := &droverv1.GitChange{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	change.Spec = droverv1.GitChangeSpec{Cluster: cluster, Action: droverv1.GitWrite, FluxConfig: "fleet", RequestedBy: "jane", Command: "drover create cluster"}
	text := strings.NewReplacer(append(replace, "CLUSTER", cluster, "NAMESPACE", w.ns)...).Replace(manifests)
	for _, one := range strings.Split(text, "\n---\n") {
		raw, err := yaml.YAMLToJSON([]byte(one))
		w.must(err)
		change.Spec.Objects = append(change.Spec.Objects, runtime.RawExtension{Raw: raw})
	}
	w.must(w.Create(w.Context(), change))
}

func (w *world) remove(name, cluster string) {
	w.Helper()
	change := &droverv1.GitChange{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	change.Spec = droverv1.GitChangeSpec{Cluster: cluster, Action: droverv1.GitRemove, FluxConfig: "fleet", RequestedBy: "jane"}
	w.must(w.Create(w.Context(), change))
}

// reconcile runs the controller once and returns the change.
func (w *world) reconcile(name string) (*droverv1.GitChange, ctrl.Result) {
	w.Helper()
	result, err := w.c.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.ns, Name: name}})
	w.must(err)
	return w.change(name), result
}

// change returns a GitChange, or nil if it doesn't exist.
func (w *world) change(name string) *droverv1.GitChange {
	w.Helper()
	found := &droverv1.GitChange{}
	err := w.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, found)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return nil
	}
	w.must(err)
	return found
}

// expect checks the reason and the message of a condition.
func (w *world) expect(change *droverv1.GitChange, kind, reason, words string) {
	w.Helper()
	c := meta.FindStatusCondition(change.Status.Conditions, kind)
	if c == nil || c.Reason != reason || !strings.Contains(c.Message, words) {
		w.Errorf("condition %s is %+v, want reason %s and %q", kind, c, reason, words)
	}
	for _, one := range change.Status.Conditions {
		if strings.Contains(one.Message, gittest.Password) {
			w.Errorf("condition %s contains the password: %s", one.Type, one.Message)
		}
	}
}

// file returns the spec of a cluster in the repository.
func (w *world) file(cluster string) string {
	w.Helper()
	return w.repository.File(gittest.Branch, "clusters/mgmt/workload-clusters/"+cluster+"/eksa-cluster.yaml")
}

var errInjected = errors.New("injected")
