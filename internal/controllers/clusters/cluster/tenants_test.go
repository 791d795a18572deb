package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/controllers/clusters/capacity"
)

// recreate deletes a Cluster without its finalizer, as an administrator can, and creates another
// one of its name for another user.
func (w *world) recreate(name, user string) {
	w.Helper()
	w.change(name, func(c *anywherev1.Cluster) { c.Finalizers = nil })
	former := w.cluster(name)
	w.must(w.Delete(w.Context(), former))
	again := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Annotations: map[string]string{CreatedByAnnotation: user}}, Spec: former.Spec}
	w.must(w.Create(w.Context(), again))
}

func TestRecreatedClusterTakesOverNothing(t *testing.T) {
	w := newWorld(t)
	w.make("again")
	w.reconcile("again")
	w.initialized("again")
	w.rollOut("again")
	original := w.kubeconfig("again", "secret")
	w.reconcile("again")
	before := w.objects("again")
	w.recreate("again", "attacker")
	for range 2 {
		w.reconcile("again")
	}
	if got := w.failure("again"); !strings.Contains(got, "belongs to a deleted cluster of the same name") {
		t.Errorf("failure is %q", got)
	}
	if s := w.cluster("again").Status; meta.IsStatusConditionTrue(s.Conditions, anywherev1.ControlPlaneInitialized) || s.ControlPlane != "0/1" {
		t.Errorf("it reports the machines of the deleted Cluster: %s, %+v", s.ControlPlane, s.Conditions)
	}
	if diff := cmp.Diff(before, w.objects("again")); diff != "" {
		t.Errorf("objects of the deleted Cluster changed:\n%s", diff)
	}
	for _, key := range []client.ObjectKey{{Namespace: w.ns, Name: "again-kubeconfig"}, {Namespace: "eksa-packages-again", Name: "again-packages"}} {
		binding := &rbacv1.RoleBinding{}
		w.must(w.Get(t.Context(), key, binding))
		if binding.Subjects[0].Name != "developer" {
			t.Errorf("RoleBinding %s is for %s", key, binding.Subjects[0].Name)
		}
	}

	t.Log("deleting the new one deletes nothing of the former one either")
	w.must(w.Delete(t.Context(), w.cluster("again")))
	for range 4 {
		w.reconcile("again")
	}
	if diff := cmp.Diff(before, w.objects("again")); diff != "" {
		t.Errorf("objects of the deleted Cluster were deleted:\n%s", diff)
	}
	w.must(w.Delete(t.Context(), original))
}

func TestMovedClusterKeepsItsObjects(t *testing.T) {
	w := newWorld(t)
	w.make("moved")
	w.reconcile("moved")
	uid := string(w.cluster("moved").UID)
	w.recreate("moved", "developer")
	w.change("moved", func(c *anywherev1.Cluster) { c.Annotations[anywherev1.ClusterUIDAnnotation] = uid })
	before := w.objects("moved")
	w.reconcile("moved")
	if diff := cmp.Diff(before, w.objects("moved")); diff != "" || w.failure("moved") != "" {
		t.Errorf("failure is %q, objects changed:\n%s", w.failure("moved"), diff)
	}
}

func TestUnmarkedObjectsOfAnEarlierVersionAreAdopted(t *testing.T) {
	w := newWorld(t)
	unmark := func(name string) *clusterv1.Cluster {
		made := &clusterv1.Cluster{}
		w.must(w.Get(t.Context(), system(name), made))
		delete(made.Annotations, anywherev1.ClusterUIDAnnotation)
		w.must(w.Update(t.Context(), made))
		return made
	}
	w.make("older")
	w.reconcile("older")
	made := unmark("older")
	w.reconcile("older")
	w.must(w.Get(t.Context(), client.ObjectKeyFromObject(made), made))
	if got := made.Annotations[anywherev1.ClusterUIDAnnotation]; got != string(w.cluster("older").UID) || w.failure("older") != "" {
		t.Errorf("it is marked %q, failure is %q", got, w.failure("older"))
	}
}

func TestForeignNamespaceGrantsNothing(t *testing.T) {
	w := newWorld(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "eksa-packages-captured"}}
	w.must(w.Create(t.Context(), namespace))
	w.make("captured")
	w.reconcile("captured")
	w.initialized("captured")
	w.reconcile("captured")
	key, binding := client.ObjectKey{Namespace: namespace.Name, Name: "captured-packages"}, &rbacv1.RoleBinding{}
	if err := w.Get(t.Context(), key, binding); !apierrors.IsNotFound(err) {
		t.Errorf("%+v may write packages in the namespace of others: %v", binding.Subjects, err)
	}
	want := `False NamespaceNotOwned Namespace "eksa-packages-captured" was not created for this cluster; ask an administrator to delete it, or to annotate it with drover.dev/cluster-uid=` + string(w.cluster("captured").UID)
	if got := conditionText(w.cluster("captured").Status, anywherev1.PackagesEnabled); got != want {
		t.Errorf("PackagesEnabled is %q, want %q", got, want)
	}

	namespace.Annotations = map[string]string{anywherev1.ClusterUIDAnnotation: string(w.cluster("captured").UID)}
	w.must(w.Update(t.Context(), namespace))
	w.reconcile("captured")
	w.must(w.Get(t.Context(), key, binding))
	if meta.FindStatusCondition(w.cluster("captured").Status.Conditions, anywherev1.PackagesEnabled) != nil {
		t.Error("the condition is still set, want it removed")
	}
}

func TestNamespaceOfATenantIsNotUsedForAClusterOfAdministrators(t *testing.T) {
	w := newWorld(t)
	w.make("reused")
	w.reconcile("reused")
	w.initialized("reused")
	w.reconcile("reused")
	w.removeObjects("reused")
	w.recreate("reused", "admin")
	w.change("reused", func(c *anywherev1.Cluster) { c.Annotations[anywherev1.AdministeredAnnotation] = "true" })
	w.reconcile("reused")
	w.initialized("reused")
	w.reconcile("reused")
	if got := conditionText(w.cluster("reused").Status, anywherev1.PackagesEnabled); !strings.Contains(got, "False NamespaceNotOwned") {
		t.Errorf("PackagesEnabled is %q", got)
	}
	key, binding := client.ObjectKey{Namespace: "eksa-packages-reused", Name: "reused-packages"}, &rbacv1.RoleBinding{}
	w.must(w.Get(t.Context(), key, binding))

	t.Log("an administrator gives the namespace to the new Cluster, whose packages are not for the former creator")
	namespace := &corev1.Namespace{}
	w.must(w.Get(t.Context(), client.ObjectKey{Name: key.Namespace}, namespace))
	namespace.Annotations[anywherev1.ClusterUIDAnnotation] = string(w.cluster("reused").UID)
	w.must(w.Update(t.Context(), namespace))
	w.reconcile("reused")
	w.must(w.Get(t.Context(), key, binding))
	if binding.Subjects[0].Name != "admin" {
		t.Errorf("%s may write packages", binding.Subjects[0].Name)
	}
}

// removeObjects deletes the objects of Cluster API, as deleting its Cluster does.
func (w *world) removeObjects(name string) {
	w.Helper()
	for _, o := range []client.Object{
		&clusterv1.Cluster{}, &infrav1.PacketCluster{}, &controlplanev1.KubeadmControlPlane{}, &clusterv1.MachineDeployment{}, &clusterv1.MachineHealthCheck{},
		&infrav1.PacketMachineTemplate{}, &bootstrapv1.KubeadmConfigTemplate{}, &addonsv1.HelmChartProxy{},
	} {
		labels := client.MatchingLabels(build.Labels(&metav1.ObjectMeta{Name: name, Namespace: w.ns}))
		w.must(w.DeleteAllOf(w.Context(), o, client.InNamespace(anywherev1.SystemNamespace), labels))
	}
}

// TestNothingIsCreatedForAClusterWhoseNameIsTaken would otherwise leave encryption keys that block
// the owner of the name.
func TestNothingIsCreatedForAClusterWhoseNameIsTaken(t *testing.T) {
	w := newWorld(t)
	w.make("keys")
	w.reconcile("keys")
	w.recreate("keys", "attacker")
	w.change("keys", askForEncryption)
	w.reconcile("keys")
	secret := &corev1.Secret{}
	if err := w.Get(t.Context(), system(anywherev1.EncryptionSecret("keys")), secret); !apierrors.IsNotFound(err) {
		t.Errorf("keys of the new Cluster: %v, %v", secret.Annotations, err)
	}
}

func TestForeignCopyOfAKubeconfigGrantsNothing(t *testing.T) {
	for name, foreign := range map[string]client.Object{
		"held-copy": &corev1.Secret{Data: map[string][]byte{"value": []byte("theirs")}},
		"held-same": &corev1.Secret{Data: map[string][]byte{"value": []byte("secret")}},
		"held-role": &rbacv1.Role{Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			foreign.SetNamespace(w.ns)
			foreign.SetName(name + "-kubeconfig")
			w.must(w.Create(t.Context(), foreign))
			w.make(name)
			w.reconcile(name)
			w.kubeconfig(name, "secret")
			w.reconcile(name)
			binding := &rbacv1.RoleBinding{}
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(foreign), binding); !apierrors.IsNotFound(err) {
				t.Errorf("%+v may use %T of others: %v", binding.Subjects, foreign, err)
			}
		})
	}
}

func TestForeignKubeconfigIsNotCopied(t *testing.T) {
	w := newWorld(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: "fleet-kubeconfig"}, Data: map[string][]byte{"value": []byte("secret")}}
	w.must(w.Create(t.Context(), secret))
	w.make("fleet")
	w.reconcile("fleet")
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "fleet-kubeconfig"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("a kubeconfig of others was copied: %v", err)
	}
	if events := strings.Join(w.takeEvents(), "\n"); !strings.Contains(events, `Warning NotOurs Left Secret "fleet-kubeconfig"`) {
		t.Errorf("events are %s", events)
	}
	w.must(w.Delete(t.Context(), secret))
}

func TestOneOfTwoClustersGetsTheName(t *testing.T) {
	w := newWorld(t)
	other := *w
	other.ns = w.ns + "-other"
	w.must(w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.ns}}))
	for _, one := range []*world{w, &other} {
		one.make("twin")
	}
	first, second := w, &other
	if capacity.Precedes(second.cluster("twin"), first.cluster("twin")) {
		first, second = second, first
	}
	second.reconcile("twin")
	const want = "ClusterInvalid: cluster name twin already exists; choose another name"
	if got := second.failure("twin"); got != want || len(second.names("twin")) > 0 {
		t.Errorf("failure is %q, %v were made", got, second.names("twin"))
	}
	first.reconcile("twin")
	second.reconcile("twin")
	if got := second.failure("twin"); strings.Contains(got, first.ns+" ") || !strings.Contains(got, "does not belong to this cluster") {
		t.Errorf("failure is %q", got)
	}
	if first.failure("twin") != "" || len(first.names("twin")) == 0 {
		t.Errorf("failure is %q, %v were made", first.failure("twin"), first.names("twin"))
	}
}

func TestMessagesNameNoClustersOfOtherNamespaces(t *testing.T) {
	for want, w := range map[string]Workloads{
		"a, b":                         {names: []string{"a", "b"}},
		"2 in other namespaces":        {elsewhere: 2},
		"a, and 1 in other namespaces": {names: []string{"a"}, elsewhere: 1},
	} {
		if got := w.String(); got != want || w.None() {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
