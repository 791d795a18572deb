package lifecycle

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/install/about"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/plane"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/managertest"
)

func TestMain(m *testing.M) {
	runAsPlane()
	managertest.Main(m, func() {})
}

// world is a management plane without a manager.
type world struct {
	*testing.T

	config    *rest.Config
	client    client.WithWatch
	namespace string
	dir       string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	w := &world{T: t, config: server.Config, namespace: server.Namespace(t), dir: t.TempDir()}
	connected, err := inspect.Connect(server.Config)
	w.must(err)
	w.client = connected.Client
	t.Cleanup(w.deleteClusters)
	return w
}

// deleteClusters leaves none for other tests: a management cluster manages those of all namespaces.
func (w *world) deleteClusters() {
	if err := w.client.DeleteAllOf(context.Background(), &anywherev1.Cluster{}, client.InNamespace(w.namespace)); err != nil {
		w.Errorf("deleting clusters: %v", err)
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// cluster creates a Cluster of Drover's, with the Cluster API cluster below it.
func (w *world) cluster(name string, paused bool) {
	w.Helper()
	ours := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: anywherev1.ClusterSpec{Management: ptr.To(false)}}
	theirs := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "x", Kind: "Y", Name: "z"}},
	}
	if paused {
		ours.Annotations = map[string]string{anywherev1.PausedAnnotation: "true"}
		theirs.Spec.Paused = ptr.To(true)
	}
	for _, o := range []client.Object{ours, theirs} {
		w.must(w.client.Create(w.Context(), o))
		w.Cleanup(func() { _ = w.client.Delete(context.Background(), o) })
	}
}

// pausedNow returns the names of the paused clusters of both kinds.
func (w *world) pausedNow() []string {
	w.Helper()
	ours, theirs := &anywherev1.ClusterList{}, &clusterv1.ClusterList{}
	w.must(w.client.List(w.Context(), ours, client.InNamespace(w.namespace)))
	w.must(w.client.List(w.Context(), theirs, client.InNamespace(w.namespace)))
	out := []string{}
	for i := range ours.Items {
		if ours.Items[i].IsPaused() {
			out = append(out, "ours "+ours.Items[i].Name)
		}
	}
	for i := range theirs.Items {
		if ptr.Deref(theirs.Items[i].Spec.Paused, false) {
			out = append(out, "theirs "+theirs.Items[i].Name)
		}
	}
	return out
}

// management returns the planner of the plane's management cluster.
func (w *world) management() *Management {
	w.Helper()
	kubeconfig := filepath.Join(w.dir, "own.kubeconfig")
	w.must(clientcmd.WriteToFile(*kubetest.AsKubeconfig(w.config), kubeconfig))
	return &Management{
		Options: Options{Dir: w.dir}, Own: kubeconfig, Bootstrap: plane.Home{Dir: filepath.Join(w.dir, "bootstrap")},
		Config: &spec.Config{Cluster: &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mgmt"}}},
	}
}

// run runs functions as phases of a plan.
func (w *world) run(phases ...func(context.Context, *phase.Progress) error) error {
	plan := &phase.Plan{Command: "upgrade cluster", Cluster: "mgmt"}
	for i, run := range phases {
		plan.Phases = append(plan.Phases, phase.Phase{Name: string(rune('a' + i)), Run: run})
	}
	_, err := plan.Run(w.Context(), Files{Dir: w.dir, Cluster: "mgmt"}.Record(), func(phase.Event) {})
	return err
}

func TestOnlyPausedClustersAreResumed(t *testing.T) {
	w := newWorld(t)
	w.cluster("mgmt", false)
	w.cluster("one", false)
	w.cluster("two", false)
	w.cluster("third", true)
	m := w.management()
	killed := errors.New("killed")
	die := true
	upgrade := func(context.Context, *phase.Progress) error {
		if die {
			return killed
		}
		return nil
	}
	if err := w.run(m.pauseOthers, upgrade, m.resumeOthers); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	all := []string{"ours one", "ours third", "ours two", "theirs one", "theirs third", "theirs two"}
	if diff := cmp.Diff(all, w.pausedNow()); diff != "" {
		t.Errorf("paused (-want +got):\n%s", diff)
	}
	die = false
	w.must(w.run(m.pauseOthers, upgrade, m.resumeOthers))
	if diff := cmp.Diff([]string{"ours third", "theirs third"}, w.pausedNow()); diff != "" {
		t.Errorf("still paused (-want +got):\n%s", diff)
	}
}

func TestInterruptedPauseIsResumed(t *testing.T) {
	w := newWorld(t)
	w.cluster("one", false)
	w.cluster("two", false)
	m := w.management()
	half := func(ctx context.Context, p *phase.Progress) error {
		// What a process leaves that was killed after it paused the first cluster.
		if err := p.Keep(keptClusters, []string{"Cluster/" + w.namespace + "/one"}); err != nil {
			return err
		}
		one := &anywherev1.Cluster{}
		w.must(w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "one"}, one))
		w.must(annotate(ctx, w.client, one, map[string]string{anywherev1.PausedAnnotation: "true"}))
		return nil
	}
	w.must(w.run(half, m.pauseOthers, m.resumeOthers))
	if diff := cmp.Diff([]string{}, w.pausedNow()); diff != "" {
		t.Errorf("still paused (-want +got):\n%s", diff)
	}
}

func TestManagementClusterWithWorkloadClustersIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	w.cluster("mgmt", false)
	w.cluster("one", false)
	m := w.management()
	err := w.run(m.setupDelete)
	if err == nil || !strings.Contains(err.Error(), "still has workload clusters") || !strings.Contains(err.Error(), "/one") {
		t.Errorf("got error %v, want one that contains %q and %q", err, "still has workload clusters", "/one")
	}
	one := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "one"}}
	w.must(w.client.Delete(t.Context(), one))
	w.must(w.run(m.setupDelete))
}

// workload returns the planner of a workload cluster.
func (w *world) workload(name string) *Workload {
	w.Helper()
	c := &spec.Config{
		Cluster: &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}},
		Docker:  &anywherev1.DockerDatacenterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}},
	}
	s := &c.Cluster.Spec
	s.KubernetesVersion, s.Management = "1.35", ptr.To(false)
	s.ControlPlaneConfiguration.Count = 1
	s.WorkerNodeGroupConfigurations = []anywherev1.WorkerNodeGroupConfiguration{{Name: "md-0", Count: ptr.To(1)}}
	s.DatacenterRef = anywherev1.Ref{Kind: anywherev1.DockerDatacenterConfigKind, Name: name}
	spec.Default(c)
	return &Workload{Options: Options{Dir: w.dir}, Config: c, REST: w.config}
}

func TestOlderDroverIsRejected(t *testing.T) {
	w := newWorld(t)
	w.stamp("v0.6.0")
	defer w.stamp(version.Get().Version)
	for own, want := range map[string]string{"v0.5.0": "an older drover is not supported", "v0.8.0": "only the previous minor version is supported"} {
		c := w.workload("old")
		c.Version = own
		err := w.run(c.setupCreate)
		var skew *SkewError
		if !errors.As(err, &skew) || !strings.Contains(err.Error(), want) {
			t.Errorf("Drover %s on v0.6.0: %v", own, err)
		}
		c.SkipSkew = true
		if err := w.run(c.setupCreate); errors.As(err, &skew) {
			t.Errorf("Drover %s on v0.6.0 unchecked: %v", own, err)
		}
	}
}

func TestOlderDroverOfACreatorIsRejected(t *testing.T) {
	w := newWorld(t)
	w.creator("old-dev")
	w.runs(about.Plane{Version: "v0.6.0", Kubernetes: []string{"v1.36.3", "v1.35.4"}})
	c := w.workload("olds")
	c.Version = "v0.5.0"
	c.REST = rest.CopyConfig(w.config)
	c.REST.Impersonate = rest.ImpersonationConfig{UserName: "old-dev", Groups: []string{"system:authenticated"}}
	for name, setup := range map[string]func(context.Context, *phase.Progress) error{"create": c.setupCreate, "upgrade": c.setupUpgrade, "delete": c.setupDelete} {
		var skew *SkewError
		if err := w.run(setup); !errors.As(err, &skew) || !strings.Contains(err.Error(), "use Drover v0.6.0") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.Version = "v0.6.0"
	c.Config.Cluster.Spec.KubernetesVersion = "1.34"
	if err := w.run(c.setupCreate); err == nil || !strings.Contains(err.Error(), "does not offer Kubernetes 1.34: choose one of v1.36.3, v1.35.4") {
		t.Errorf("a version that the plane does not have: %v", err)
	}
	c.Config.Cluster.Spec.KubernetesVersion = "1.35"
	w.must(w.run(c.setupCreate))
	if err := w.client.Get(t.Context(), c.key(), &anywherev1.Cluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("a cluster was made: %v", err)
	}
}

// runs publishes what runs on the plane.
func (w *world) runs(p about.Plane) {
	w.Helper()
	keeper := &about.Keeper{Client: w.client, Live: w.client, Plane: p}
	_, err := keeper.Reconcile(w.Context(), ctrl.Request{})
	w.must(err)
	w.Cleanup(func() {
		meta := metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: about.Name}
		w.must(w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: meta}))
	})
}

// creator grants a user the role of a creator.
func (w *world) creator(user string) {
	w.Helper()
	w.must(w.client.Create(w.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "drover-cluster-creator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user, APIGroup: rbacv1.GroupName}},
	}))
}

// stamp changes the version of the plane.
func (w *world) stamp(other string) {
	w.Helper()
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	key := client.ObjectKey{Name: clusterDefinition}
	w.must(w.client.Get(context.Background(), key, definition))
	before := definition.DeepCopy()
	definition.Annotations[install.VersionAnnotation] = other
	w.must(w.client.Patch(context.Background(), definition, client.MergeFrom(before)))
}

func TestCreatorNeedsOnlyTheirRole(t *testing.T) {
	w := newWorld(t)
	w.creator("dev")
	c := w.workload("devs")
	c.REST = rest.CopyConfig(w.config)
	c.REST.Impersonate = rest.ImpersonationConfig{UserName: "dev", Groups: []string{"system:authenticated"}}
	w.must(w.run(c.setupCreate, func(ctx context.Context, p *phase.Progress) error {
		if err := ensureNamespace(ctx, c.plane.Client, w.namespace); err != nil {
			return err
		}
		return c.applyAll(ctx)
	}))
	made := &anywherev1.Cluster{}
	w.must(w.client.Get(t.Context(), c.key(), made))
	tree, err := c.plane.Tree(t.Context(), made)
	if err != nil || len(tree.Children) > 0 {
		t.Errorf("what a creator sees of a cluster: %v, %v", tree, err)
	}
	if _, err := c.plane.Find(t.Context(), w.namespace, "devs"); err != nil {
		t.Error(err)
	}
	if err := c.credentials(t.Context()); err == nil {
		t.Error("a creator reads credentials")
	}
	w.must(w.client.Delete(t.Context(), made))
}

func TestCreatorPromotesNothing(t *testing.T) {
	w := newWorld(t)
	w.creator("climber")
	c := w.workload("hill")
	c.Config.Cluster.Status.Conditions = []metav1.Condition{{Type: anywherev1.Ready, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now()}}
	status := c.Config.Cluster.DeepCopy()
	w.must(w.client.Create(t.Context(), c.Config.Docker))
	w.must(w.client.Create(t.Context(), c.Config.Cluster))
	status.ResourceVersion = c.Config.Cluster.ResourceVersion
	w.must(w.client.Status().Update(t.Context(), status))
	as := rest.CopyConfig(w.config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "climber", Groups: []string{"system:authenticated"}}
	promotion := &Promotion{Options: Options{Dir: w.dir, Kubeconfig: "file"}, Cluster: c.key(), REST: as}
	if err := w.run(promotion.setup); err == nil || !strings.Contains(err.Error(), "requires an administrator of the management plane at file") {
		t.Errorf("error %v", err)
	}
	live := &anywherev1.Cluster{}
	w.must(w.client.Get(t.Context(), c.key(), live))
	if live.IsPaused() {
		t.Error("the cluster is paused")
	}
}

func TestSeveralChangedObjectsAreOneChange(t *testing.T) {
	w := newWorld(t)
	c := w.workload("both")
	c.Config.Docker, c.Config.Cluster.Spec.DatacenterRef = nil, anywherev1.Ref{Kind: anywherev1.PacketDatacenterConfigKind, Name: "both"}
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: "both"}
	c.Config.Packet = &anywherev1.PacketDatacenterConfig{ObjectMeta: meta, Spec: anywherev1.PacketDatacenterConfigSpec{ProjectID: "p", Metro: "da"}}
	machine := &anywherev1.PacketMachineConfig{ObjectMeta: meta, Spec: anywherev1.PacketMachineConfigSpec{MachineType: "small", OS: "ubuntu_24_04"}}
	c.Config.Machines = map[string]*anywherev1.PacketMachineConfig{"both": machine}
	group := &anywherev1.Ref{Kind: anywherev1.PacketMachineConfigKind, Name: "both"}
	c.Config.Cluster.Spec.ControlPlaneConfiguration.MachineGroupRef = group
	c.Config.Cluster.Spec.WorkerNodeGroupConfigurations[0].MachineGroupRef = group
	w.must(c.connect(t.Context()))
	w.must(c.applyAll(t.Context()))

	machine.Spec.MachineType = "big"
	c.Config.Cluster.Spec.KubernetesVersion = "1.36"
	_, err := c.Differences(t.Context())
	w.must(err)
	if n := c.changedObjects(); n != 2 {
		t.Fatalf("%d objects change: %v", n, c.differences)
	}
	paused := func() bool {
		live := &anywherev1.Cluster{}
		w.must(w.client.Get(t.Context(), c.key(), live))
		return live.IsPaused()
	}
	w.must(w.run(c.pause, func(ctx context.Context, p *phase.Progress) error {
		if !paused() {
			t.Error("the controllers are not held back")
		}
		if err := c.applyAll(ctx); err != nil {
			return err
		}
		if !paused() {
			t.Error("applying the spec resumed the controllers too early")
		}
		return c.unpause(ctx, p)
	}))
	if paused() {
		t.Error("the cluster is still paused")
	}
}
