package bootstrap_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/audit"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

const (
	system = bootstrap.SystemNamespace
	// team is the namespace of the users of clusters.
	team = "team"
)

// sso is a config that both clusters reference.
func sso() *anywherev1.OIDCConfig {
	return &anywherev1.OIDCConfig{ObjectMeta: meta(team, "sso"), Spec: anywherev1.OIDCConfigSpec{ClientID: "drover", IssuerURL: "https://sso.example.com"}}
}

func meta(namespace, name string, change ...func(*metav1.ObjectMeta)) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name}
	for _, c := range change {
		c(&m)
	}
	return m
}

func ofCluster(name string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) { m.Labels = map[string]string{clusterv1.ClusterNameLabel: name} }
}

func held(finalizer string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) { m.Finalizers = []string{finalizer} }
}

func ownedBy(o client.Object, apiVersion, kind string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: ptr.To(true)})
	}
}

// movedObjects has all objects of one cluster.
type movedObjects struct {
	cluster *clusterv1.Cluster
	status  clusterv1.ClusterStatus
	infra   *infrav1.PacketCluster
	// objects should move, and shared should be on both sides.
	objects, shared []client.Object
	// pending is the name of the record of what is only noted on the Cluster, and uid its UID.
	pending, uid string
}

// newMovedObjects creates the objects of a cluster that is ready.
func (s *side) newMovedObjects(name string) *movedObjects {
	s.t.Helper()
	h := &movedObjects{cluster: &clusterv1.Cluster{ObjectMeta: meta(system, name, held("cluster.cluster.x-k8s.io"))}}
	h.cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketCluster", Name: name}
	h.cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true)}
	h.cluster.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: "Initialized", LastTransitionTime: metav1.Now(),
	}}
	h.status = h.cluster.Status
	s.create(h.cluster)
	h.infra = &infrav1.PacketCluster{ObjectMeta: meta(system, name, ofCluster(name), held(infrav1.ClusterFinalizer), ownedBy(h.cluster, clusterv1.GroupVersion.String(), "Cluster"))}
	h.infra.Spec.ProjectID, h.infra.Spec.Metro = "project", "da"
	h.infra.Spec.CredentialsRef = &infrav1.CredentialsReference{Name: "metal-" + name}
	ca := &corev1.Secret{ObjectMeta: meta(system, name+"-ca", ofCluster(name)), Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"tls.crt": []byte("x")}}
	chart := &addonsv1.HelmChartProxy{ObjectMeta: meta(system, name+"-cni", ofCluster(name), held(addonsv1.HelmChartProxyFinalizer))}
	chart.Spec.ChartName, chart.Spec.RepoURL = "cni", "oci://127.0.0.1:5000/charts"
	controller := &packagesv1.PackageBundleController{ObjectMeta: meta(packagesv1.Namespace, name, held(packagesv1.ControllerFinalizer))}
	controller.Spec.ActiveBundle = "v1-36-1"
	pack := &packagesv1.Package{ObjectMeta: meta(packagesv1.Namespace, name+"-hello", held(packagesv1.PackageFinalizer))}
	pack.Spec.PackageName = "hello"
	login := &corev1.Secret{ObjectMeta: meta(packagesv1.NamespacePrefix+name, "login"), Data: map[string][]byte{"password": []byte("x")}}
	s.create(h.infra, ca, chart, controller, pack, login)
	release := &addonsv1.HelmReleaseProxy{ObjectMeta: meta(system, name+"-cni", ofCluster(name), held(addonsv1.HelmReleaseProxyFinalizer), ownedBy(chart, addonsv1.GroupVersion.String(), "HelmChartProxy"))}
	packRelease := &addonsv1.HelmReleaseProxy{ObjectMeta: meta(packagesv1.Namespace, name+"-hello", ofCluster(name), ownedBy(pack, packagesv1.GroupVersion.String(), "Package"))}
	for _, r := range []*addonsv1.HelmReleaseProxy{release, packRelease} {
		r.Spec.ClusterRef = corev1.ObjectReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: system, Name: name}
		r.Spec.ChartName, r.Spec.RepoURL = "cni", "oci://127.0.0.1:5000/charts"
	}
	credentials := &corev1.Secret{ObjectMeta: meta(system, "metal-"+name), Data: map[string][]byte{"PACKET_API_KEY": []byte("x")}}
	s.create(release, packRelease, credentials)
	datacenter := &anywherev1.DockerDatacenterConfig{ObjectMeta: meta(team, name)}
	ours := &anywherev1.Cluster{ObjectMeta: meta(team, name, held(anywherev1.ClusterFinalizer))}
	ours.Spec.DatacenterRef = anywherev1.Ref{Kind: "DockerDatacenterConfig", Name: name}
	ours.Spec.IdentityProviderRefs = []anywherev1.Ref{{Kind: "OIDCConfig", Name: "sso"}}
	// Pending records of the controller.
	ours.Annotations = map[string]string{audit.Annotation: `[{"generation":1,"action":"Scaled","user":"creator","time":"2026-05-01T12:00:00.000000Z"}]`}
	s.create(datacenter, ours)
	record := &droverv1.AuditRecord{ObjectMeta: metav1.ObjectMeta{Name: name + "-created", Labels: map[string]string{droverv1.ClusterLabel: name}}}
	record.Spec = droverv1.AuditRecordSpec{Cluster: droverv1.AuditedCluster{Name: name, Namespace: team}, Action: droverv1.Created, User: "creator", Time: metav1.NowMicro()}
	s.create(record)
	h.uid = string(ours.UID)
	h.pending = h.uid + "-1"
	schedule, bucket := s.newSchedule(name)
	h.objects = append([]client.Object{h.cluster, h.infra, ca, chart, release, controller, pack, packRelease, login, datacenter, ours, schedule}, s.newEtcd(h.cluster)...)
	h.shared = []client.Object{credentials, record, bucket}
	return h
}

// newSchedule creates a schedule of snapshots, and the Secret with its credentials.
func (s *side) newSchedule(cluster string) (schedule, secret client.Object) {
	s.t.Helper()
	secret = &corev1.Secret{ObjectMeta: meta(system, "bucket-"+cluster), Data: map[string][]byte{"AWS_ACCESS_KEY_ID": []byte("x")}}
	nightly := &droverv1.EtcdSnapshotSchedule{ObjectMeta: meta(system, cluster+"-nightly")}
	nightly.Spec = droverv1.EtcdSnapshotScheduleSpec{
		ClusterName: cluster, Schedule: "@daily", Location: "s3://snapshots", Recipients: []string{"age1"}, SecretRef: &droverv1.SecretReference{Name: secret.GetName()},
	}
	s.create(secret, nightly)
	return nightly, secret
}

// newEtcd creates external etcd with one machine.
func (s *side) newEtcd(cluster *clusterv1.Cluster) []client.Object {
	s.t.Helper()
	of, name := ofCluster(cluster.Name), cluster.Name+"-etcd"
	etcd := &etcdv1.EtcdadmCluster{ObjectMeta: meta(system, name, of, held(etcdv1.Finalizer), ownedBy(cluster, clusterv1.GroupVersion.String(), "Cluster"))}
	etcd.Spec.InfrastructureTemplate = corev1.ObjectReference{Kind: "PacketMachineTemplate", Name: name}
	s.create(etcd)
	owned := ownedBy(etcd, etcdv1.GroupVersion.String(), "EtcdadmCluster")
	config := &etcdbootstrapv1.EtcdadmConfig{ObjectMeta: meta(system, name+"-0", of, owned)}
	machine := &infrav1.PacketMachine{ObjectMeta: meta(system, name+"-0", of, held(infrav1.MachineFinalizer), owned)}
	machine.Spec = infrav1.PacketMachineSpec{OS: "ubuntu_24_04", MachineType: "c3.small.x86", BillingCycle: "hourly"}
	s.create(config, machine)
	userdata := &corev1.Secret{ObjectMeta: meta(system, name+"-0", of, ownedBy(config, etcdbootstrapv1.GroupVersion.String(), "EtcdadmConfig")), Type: clusterv1.ClusterSecretType}
	userdata.Labels[clusterctlv1.ClusterctlMoveLabel] = ""
	s.create(userdata)
	return []client.Object{etcd, config, machine, userdata}
}

// newSource returns a plane with two clusters that share objects.
func newSource(t *testing.T, from *side) (a, b *movedObjects, bundle client.Object) {
	t.Helper()
	for _, namespace := range []string{system, team, packagesv1.Namespace, packagesv1.NamespacePrefix + "a", packagesv1.NamespacePrefix + "b"} {
		must(t, client.IgnoreAlreadyExists(from.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	}
	from.create(sso())
	bundle = &packagesv1.PackageBundle{ObjectMeta: meta(packagesv1.Namespace, "v1-36-1")}
	bundle.(*packagesv1.PackageBundle).Spec.Packages = []packagesv1.BundlePackage{}
	from.create(bundle)
	return from.newMovedObjects("a"), from.newMovedObjects("b"), bundle
}

// check checks where the objects of two clusters are after one of them was moved.
func check(t *testing.T, from, to *side, movedOne, stayed *movedObjects, bundle client.Object) {
	t.Helper()
	for _, o := range movedOne.objects {
		if from.has(o) || !to.has(o) {
			t.Errorf("%T %s: at the source: %v, at the target: %v", o, o.GetName(), from.has(o), to.has(o))
		}
	}
	for _, o := range stayed.objects {
		if !from.has(o) || to.has(o) {
			t.Errorf("%T %s of the other cluster: at the source: %v, at the target: %v", o, o.GetName(), from.has(o), to.has(o))
		}
	}
	for _, o := range append(movedOne.shared, bundle) {
		if !from.has(o) || !to.has(o) {
			t.Errorf("%T %s, which others need: at the source: %v, at the target: %v", o, o.GetName(), from.has(o), to.has(o))
		}
	}
	if alone := len(stayed.objects) == 0; !to.has(sso()) || !alone && !from.has(sso()) {
		t.Errorf("a config that both clusters refer to: at the source: %v, at the target: %v", from.has(sso()), to.has(sso()))
	}
	for _, s := range []*side{from, to} {
		for _, o := range s.paused() {
			t.Errorf("%T %s is still paused", o, o.GetName())
		}
	}
}

// paused returns everything that is paused.
func (s *side) paused() []client.Object {
	s.t.Helper()
	var out []client.Object
	clusters, packs, controllers, ours := &clusterv1.ClusterList{}, &packagesv1.PackageList{}, &packagesv1.PackageBundleControllerList{}, &anywherev1.ClusterList{}
	for _, list := range []client.ObjectList{clusters, packs, controllers, ours} {
		must(s.t, s.List(s.t.Context(), list))
	}
	for i := range ours.Items {
		if c := &ours.Items[i]; c.IsPaused() || marked(c) {
			out = append(out, c)
		}
	}
	for i := range clusters.Items {
		if c := &clusters.Items[i]; ptr.Deref(c.Spec.Paused, false) || marked(c) {
			out = append(out, c)
		}
	}
	for i := range packs.Items {
		if p := &packs.Items[i]; marked(p) {
			out = append(out, p)
		}
	}
	for i := range controllers.Items {
		if p := &controllers.Items[i]; marked(p) {
			out = append(out, p)
		}
	}
	return out
}

func marked(o client.Object) bool {
	_, paused := o.GetAnnotations()[clusterv1.PausedAnnotation]
	_, mark := o.GetAnnotations()[bootstrap.PausedForMove]
	return paused || mark
}

func TestMoveMovesOneClusterOnly(t *testing.T) {
	from, to := twoSides(t)
	a, b, bundle := newSource(t, from)
	must(t, bootstrap.Move(t.Context(), from.Config, to.Config, "a"))
	check(t, from, to, a, b, bundle)

	t.Log("who did what goes along, and nothing of other clusters")
	record := &droverv1.AuditRecord{}
	must(t, to.Get(t.Context(), client.ObjectKey{Name: a.pending}, record))
	if record.Spec.User != "creator" || record.Spec.Action != droverv1.Scaled || record.Labels[droverv1.ClusterLabel] != "a" {
		t.Errorf("got audit record %+v", record)
	}
	records := &droverv1.AuditRecordList{}
	must(t, to.List(t.Context(), records))
	if len(records.Items) != 2 {
		t.Errorf("%d records arrived, want 2", len(records.Items))
	}

	t.Log("it still owns its objects, which carry its first UID")
	arrived := &anywherev1.Cluster{}
	must(t, to.Get(t.Context(), client.ObjectKey{Namespace: team, Name: "a"}, arrived))
	if got := arrived.Annotations[anywherev1.ClusterUIDAnnotation]; got != a.uid || got == string(arrived.UID) {
		t.Errorf("its identity is %q, want %q", got, a.uid)
	}

	t.Log("owners are those of the new side")
	release := &addonsv1.HelmReleaseProxy{}
	must(t, to.Get(t.Context(), client.ObjectKey{Namespace: packagesv1.Namespace, Name: "a-hello"}, release))
	pack := &packagesv1.Package{}
	must(t, to.Get(t.Context(), client.ObjectKey{Namespace: packagesv1.Namespace, Name: "a-hello"}, pack))
	if len(release.OwnerReferences) != 1 || release.OwnerReferences[0].UID != pack.UID {
		t.Errorf("owners %v, want Package %s", release.OwnerReferences, pack.UID)
	}

	t.Log("a second time there is nothing to do, and one that is nowhere is said to be so")
	must(t, bootstrap.Move(t.Context(), from.Config, to.Config, "a"))
	check(t, from, to, a, b, bundle)
	to.simulateControllers(a)
	var nowhere *bootstrap.NotFoundError
	if err := bootstrap.Move(t.Context(), from.Config, to.Config, "c"); !errors.As(err, &nowhere) {
		t.Errorf("moving a cluster that is nowhere: %v", err)
	}

	t.Log("a move that is killed, early or late, is finished by the next")
	killed := 0
	for after := int64(1); ; after += 1 + after/2 {
		cfg := rest.CopyConfig(from.Config)
		ctx, end := context.WithCancel(t.Context())
		kill := &killer{end: end}
		kill.left.Store(after)
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &killing{next, kill} })
		other := rest.CopyConfig(to.Config)
		other.Wrap(func(next http.RoundTripper) http.RoundTripper { return &killing{next, kill} })
		source, target, s, d := other, cfg, to, from // back and forth
		if killed%2 == 1 {
			source, target, s, d = cfg, other, from, to
		}
		err := bootstrap.Move(ctx, source, target, "a")
		end()
		if err == nil {
			break
		}
		killed++
		if missing := nowhereIs(s, d, a.objects); len(missing) > 0 {
			t.Fatalf("killed after %d writes, %v are nowhere", after, missing)
		}
		must(t, bootstrap.Move(t.Context(), s.Config, d.Config, "a"))
		check(t, s, d, a, &movedObjects{}, bundle)
		d.simulateControllers(a)
	}
	if killed < 7 {
		t.Errorf("only %d moves were killed: the test does not see writes", killed)
	}
}

// simulateControllers simulates the controllers that compute the status of a cluster again.
func (s *side) simulateControllers(h *movedObjects) {
	s.t.Helper()
	cluster := &clusterv1.Cluster{}
	must(s.t, s.Get(s.t.Context(), client.ObjectKeyFromObject(h.cluster), cluster))
	cluster.Status = h.status
	must(s.t, s.Status().Update(s.t.Context(), cluster))
}

func nowhereIs(s, d *side, objects []client.Object) (missing []string) {
	for _, o := range objects {
		if !s.has(o) && !d.has(o) {
			missing = append(missing, o.GetName())
		}
	}
	return missing
}

func TestMoveRejectsAClusterBeingDeleted(t *testing.T) {
	from := newSide(t, kubetest.SharedWithoutWebhooks(t))
	must(t, client.IgnoreAlreadyExists(from.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})))
	c := &clusterv1.Cluster{ObjectMeta: meta(system, "d", held("cluster.cluster.x-k8s.io"))}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketCluster", Name: "d"}
	from.create(c)
	must(t, from.Delete(t.Context(), c))
	if err := bootstrap.Move(t.Context(), from.Config, from.Config, "d"); err == nil || !strings.Contains(err.Error(), "being deleted") {
		t.Errorf("got error %v, want one that contains %q", err, "being deleted")
	}
	if len(from.paused()) != 0 {
		t.Error("it is paused")
	}
}

func TestMoveKeepsAPausedClusterPaused(t *testing.T) {
	from, to := twoSides(t)
	must(t, client.IgnoreAlreadyExists(from.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})))
	for _, namespace := range []string{team, packagesv1.Namespace, packagesv1.NamespacePrefix + "p"} {
		must(t, client.IgnoreAlreadyExists(from.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	}
	h := from.newMovedObjects("p")
	before := h.cluster.DeepCopy()
	h.cluster.Spec.Paused = ptr.To(true)
	must(t, from.Patch(t.Context(), h.cluster, client.MergeFrom(before)))
	must(t, bootstrap.Move(t.Context(), from.Config, to.Config, "p"))
	got := &clusterv1.Cluster{}
	must(t, to.Get(t.Context(), client.ObjectKeyFromObject(h.cluster), got))
	if !ptr.Deref(got.Spec.Paused, false) {
		t.Error("the cluster was resumed")
	}
	if left := to.paused(); len(left) != 1 {
		t.Errorf("%d objects are paused, want the Cluster alone", len(left))
	}
}

// killer allows a number of writes, and then cancels the caller.
type killer struct {
	left atomic.Int64
	end  context.CancelFunc
}

type killing struct {
	next http.RoundTripper
	*killer
}

var errKilled = errors.New("killed")

func (k *killing) RoundTrip(r *http.Request) (*http.Response, error) {
	writes := r.Method != http.MethodGet
	if k.left.Load() < 0 || writes && k.left.Add(-1) < 0 {
		k.end()
		return nil, errKilled
	}
	return k.next.RoundTrip(r)
}
