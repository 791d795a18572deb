package admission

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/cluster"
	"github.com/drover-dev/drover/internal/model/owner"
)

// infrastructure creates a Cluster of Cluster API.
func (w *world) infrastructure(namespace, name string, labels map[string]string) {
	w.Helper()
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane", Name: "x"}
	w.must(w.Create(w.Context(), c))
}

func (w *world) namespace(name string, labels map[string]string) {
	w.Helper()
	w.must(client.IgnoreAlreadyExists(w.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})))
}

func (w *world) bundleController(name string, labels map[string]string) {
	w.Helper()
	w.must(w.Create(w.Context(), &packagesv1.PackageBundleController{ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: name, Labels: labels}}))
}

// prepared creates a Package in the shared namespace, and sets its target if there is one.
func (w *world) prepared(name, of string) {
	w.Helper()
	p := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: name}, Spec: packagesv1.PackageSpec{PackageName: "agent"}}
	w.must(w.Create(w.Context(), p))
	if of != "" {
		p.Status.Target = &packagesv1.PackageTarget{Cluster: of, ClusterNamespace: anywherev1.SystemNamespace}
		w.must(w.Status().Update(w.Context(), p))
	}
}

func TestNamesOfOthersCannotBeCaptured(t *testing.T) {
	w := newWorld(t)
	others := w.ns + "-tenant"
	w.namespace(others, nil)
	w.namespace(packagesv1.Namespace, nil)
	labels := func(namespace, name string) map[string]string {
		return owner.Labels(&metav1.ObjectMeta{Namespace: namespace, Name: name})
	}
	w.infrastructure(others, "elsewhere", nil)
	w.bundleController("controlled", nil)
	w.namespace("eksa-packages-roomy", nil)
	w.bundleController("prod", nil)
	w.infrastructure(anywherev1.SystemNamespace, "shop", labels(others, "shop"))
	theirs := w.workload("web")
	theirs.Namespace = others
	w.must(w.Create(t.Context(), theirs))
	w.must(w.Create(t.Context(), w.workload("mine")))
	w.bundleController("mine", labels(w.ns, "mine"))
	w.namespace("eksa-packages-ended", labels(w.ns, "ended"))
	w.prepared("gone-db-agent", "gone-db")
	w.prepared("later-agent", "")
	const exists, extends = " already exists; choose another name", "starts with the name of another cluster and a dash"
	for _, tc := range []struct{ name, want, administrator string }{
		{"free", "", ""},
		{"elsewhere", exists, ""}, // a Cluster of Cluster API that is not Drover's
		{"controlled", exists, ""},
		{"roomy", exists, ""},
		{"shop", exists, exists},
		{"web", exists, exists},
		{"prod-db", extends, ""}, // captures package prod-db-x of prod
		{"shop-a-b", extends, ""},
		{"web-2", extends, ""},
		{"elsewhere-x", extends, ""},
		{"prod2", "", ""},
		{"mine-2", "", ""},
		{"gone-db", exists, ""}, // a package is installed on a deleted cluster
		{"gone", "", ""},
		{"later", exists, ""}, // a package waits for a cluster
		{"ended", "", ""},     // the namespace of a former Cluster may be terminating
	} {
		_, err := w.ValidateCreate(w.as(creator()), w.workload(tc.name))
		w.expect(tc.name+" for a creator", tc.want, err)
		if err != nil && strings.Contains(err.Error(), others) {
			t.Errorf("%s: the message names the namespace of others: %v", tc.name, err)
		}
		warnings, err := w.ValidateCreate(w.as(administrator()), w.workload(tc.name))
		w.expect(tc.name+" for an administrator", tc.administrator, err)
		if err == nil && (len(warnings) > 0) != (tc.want != "") {
			t.Errorf("%s: warnings for an administrator are %q", tc.name, warnings)
		}
	}
}

func TestReservedAnnotations(t *testing.T) {
	w := newWorld(t)
	w.must(rbacv1.AddToScheme(w.Scheme()))
	fleet := authenticationv1.UserInfo{Username: "fleet", Groups: []string{"system:authenticated"}}
	w.must(w.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "drover-cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "fleet"}},
	}))
	configs := &configRules[*anywherev1.DockerDatacenterConfig]{users: w.users}
	for _, key := range []string{anywherev1.PausedAnnotation, anywherev1.ManagedByCLIAnnotation} {
		for _, tc := range []struct {
			user authenticationv1.UserInfo
			want string
		}{{creator(), "only administrators may create an object with the annotation " + key}, {administrator(), ""}, {fleet, ""}} {
			c := w.workload("reserved")
			c.Annotations = map[string]string{key: "true"}
			_, err := w.ValidateCreate(w.as(tc.user), c)
			w.expect("a Cluster of "+tc.user.Username, tc.want, err)
			d := &anywherev1.DockerDatacenterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "reserved", Annotations: c.Annotations}}
			_, err = configs.ValidateCreate(w.as(tc.user), d)
			w.expect("a config of "+tc.user.Username, tc.want, err)
		}
	}
}

func TestFinalizerOfAClusterIsNotRemovedByItsCreator(t *testing.T) {
	w := newWorld(t)
	w.must(rbacv1.AddToScheme(w.Scheme()))
	manager := authenticationv1.UserInfo{Username: "manager", Groups: []string{"system:authenticated"}}
	for user, role := range map[string]string{"manager": "drover-manager", "developer": "drover-cluster-creator"} {
		w.must(w.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}))
	}
	const denied = "only administrators may remove clusters.anywhere.eks.amazonaws.com/finalizer"
	was := w.workload("leftover")
	was.Finalizers = []string{anywherev1.ClusterFinalizer, "other"}
	deleted := was.DeepCopy()
	now := metav1.Now()
	deleted.DeletionTimestamp = &now
	for name, was := range map[string]*anywherev1.Cluster{"a Cluster": was, "a Cluster that is being deleted": deleted} {
		removed, kept := was.DeepCopy(), was.DeepCopy()
		removed.Finalizers, kept.Finalizers = []string{"other"}, []string{anywherev1.ClusterFinalizer}
		for _, tc := range []struct {
			user authenticationv1.UserInfo
			want string
		}{{creator(), denied}, {manager, ""}, {administrator(), ""}} {
			_, err := w.ValidateUpdate(w.as(tc.user), was, removed)
			w.expect(name+" of "+tc.user.Username, tc.want, err)
			_, err = w.ValidateUpdate(w.as(tc.user), was, kept)
			w.expect(name+" without a finalizer of others", "", err)
		}
	}
}

func TestPausedClusterIsNotPromotedByItsCreator(t *testing.T) {
	w := newWorld(t)
	was := w.workload("promoted")
	was.Annotations = map[string]string{anywherev1.PausedAnnotation: "true"}
	is := was.DeepCopy()
	is.Spec.Management = nil
	_, err := w.ValidateUpdate(w.as(creator()), was, is)
	w.expect("by a creator", "only administrators may make cluster promoted a management cluster", err)
	_, err = w.ValidateUpdate(w.as(administrator()), was, is)
	w.expect("by an administrator", "", err)
}

// helpdesk returns a user who may impersonate a creator, and is not an administrator.
func helpdesk(w *world) authenticationv1.UserInfo {
	w.Helper()
	w.must(rbacv1.AddToScheme(w.Scheme()))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "helpdesk"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{"developer"}, Verbs: []string{"impersonate"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "helpdesk"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "helpdesk"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "helpdesk"}},
	}
	for _, o := range []client.Object{role, binding} {
		w.must(client.IgnoreAlreadyExists(w.Create(w.Context(), o)))
	}
	return authenticationv1.UserInfo{Username: "helpdesk", Groups: []string{"system:authenticated"}}
}

func TestClusterUIDIsImmutable(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		name               string
		by                 authenticationv1.UserInfo
		operation          admissionv1.Operation
		was, claimed, want string
	}{
		{"a new one", creator(), admissionv1.Create, "", "", ""},
		{"a new one that claims the objects of another", creator(), admissionv1.Create, "", "other", ""},
		{"a new one by a helpdesk that claims the objects of another", helpdesk(w), admissionv1.Create, "", "other", ""},
		{"a moved one", administrator(), admissionv1.Create, "", "other", "other"},
		{"the first update", creator(), admissionv1.Update, "", "", "own"},
		{"a first update that claims the objects of another", creator(), admissionv1.Update, "", "other", "own"},
		{"an update that claims the objects of another", administrator(), admissionv1.Update, "own", "other", "own"},
		{"an update that removes it", creator(), admissionv1.Update, "moved", "", "moved"},
	} {
		was := w.workload("identity")
		was.UID = "own"
		is := was.DeepCopy()
		annotate(was, anywherev1.ClusterUIDAnnotation, tc.was)
		annotate(is, anywherev1.ClusterUIDAnnotation, tc.claimed)
		annotate(is, cluster.CreatedByAnnotation, "developer")
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: tc.operation, UserInfo: tc.by}}
		old, err := json.Marshal(was)
		w.must(err)
		request.OldObject.Raw = old
		w.must(w.Default(admission.NewContextWithRequest(t.Context(), request), is))
		if got := is.Annotations[anywherev1.ClusterUIDAnnotation]; got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestOnlyAdministratorsAreEntitled(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		name                   string
		by                     authenticationv1.UserInfo
		creator, claimed, want string
	}{
		{"of a creator", creator(), "", "", ""},
		{"of a creator who claims it", creator(), "", "true", ""},
		{"of an administrator", administrator(), "", "", "true"},
		{"of a user whom a helpdesk may impersonate", helpdesk(w), "developer", "true", ""},
		{"of a creator, moved by an administrator", administrator(), "developer", "", ""},
		{"of another administrator, moved", administrator(), "other", "true", "true"},
	} {
		c := w.workload("entitled")
		annotate(c, anywherev1.AdministeredAnnotation, tc.claimed)
		annotate(c, cluster.CreatedByAnnotation, tc.creator)
		w.must(w.Default(w.as(tc.by), c))
		if got := c.Annotations[anywherev1.AdministeredAnnotation]; got != tc.want {
			t.Errorf("a Cluster %s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestDeletionOfManagementClusterNamesNoOthers(t *testing.T) {
	w := newWorld(t)
	others := w.ns + "-managed"
	w.namespace(others, nil)
	managed := w.workload("hidden")
	managed.Namespace, managed.Spec.ManagementCluster.Name = others, "plane"
	w.must(w.Create(t.Context(), managed))
	plane := w.workload("plane")
	plane.Spec.Management, plane.Annotations = nil, map[string]string{anywherev1.ManagedByCLIAnnotation: "true"}
	err := w.delete(plane)
	w.expect("a management cluster with work elsewhere", "in other namespaces first", err)
	if err != nil && strings.Contains(err.Error(), "hidden") {
		t.Errorf("the message names the cluster of others: %v", err)
	}
}
