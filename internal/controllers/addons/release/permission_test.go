package release_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// says matches a release whose condition ClusterAvailable has a reason and a part of a message.
func says(why, text string) func(*addonsv1.HelmReleaseProxy) bool {
	return func(r *addonsv1.HelmReleaseProxy) bool {
		c := condition(r, addonsv1.ClusterAvailable)
		return c.Reason == why && strings.Contains(c.Message, text)
	}
}

// abroad creates a Cluster of another tenant.
func (w *world) abroad(name string) *corev1.ObjectReference {
	w.Helper()
	mine := w.namespace
	w.namespace = w.other
	defer func() { w.namespace = mine }()
	c := w.cluster(name)
	return &corev1.ObjectReference{Kind: "Cluster", Namespace: c.Namespace, Name: c.Name}
}

// grant allows an account of the test's namespace to get a resource of the other one.
func (w *world) grant(account, group, resource string) {
	w.Helper()
	meta := metav1.ObjectMeta{Namespace: w.other, Name: account + "-" + resource}
	w.create(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get"}}}})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: account}},
	})
}

func TestClustersOfOthersAreDenied(t *testing.T) {
	w := newWorld(t)
	theirs := w.abroad("theirs")
	r := w.release("grab", "theirs", func(s *spec) { s.ClusterRef = *theirs })
	w.await(r, "the release is denied", says(addonsv1.AccessDeniedReason, "is in another namespace; name an account that may get it in serviceAccountName"))

	t.Log("a release of theirs with the same name is neither claimed nor uninstalled")
	mine := w.namespace
	w.namespace = w.other
	own := w.release("grab", "theirs")
	w.namespace = mine
	w.await(own, "their release is ready", isReady)
	if err := w.client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.await(r, "the denied release is gone", func(r *addonsv1.HelmReleaseProxy) bool { return r == nil })
	if diff := cmp.Diff([]string{"apply"}, w.tool.did("grab")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestAccountsUseWhatTheyMayGet(t *testing.T) {
	w := newWorld(t)
	theirs := w.abroad("theirs")
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.other, Name: "login"}, Type: corev1.SecretTypeBasicAuth,
		StringData: map[string]string{"username": "me", "password": "canary"},
	})
	login := &addonsv1.Credentials{Secret: corev1.SecretReference{Namespace: w.other, Name: "login"}, Key: "config.json"}
	w.cluster("mine")
	w.await(w.release("plain", "mine", func(s *spec) { s.Credentials = login }),
		"credentials of others are denied", says(addonsv1.GetCredentialsFailedReason, "is in another namespace; copy it to namespace"))
	as := func(account string) func(*spec) {
		return func(s *spec) { s.ClusterRef, s.ServiceAccountName, s.Credentials = *theirs, account, login }
	}
	w.await(w.release("nobody", "theirs", as("nobody")), "an account without permissions is denied",
		says(addonsv1.AccessDeniedReason, "nobody\" may not get clusters.cluster.x-k8s.io"))
	w.grant("half", "cluster.x-k8s.io", "clusters")
	w.await(w.release("half", "theirs", as("half")), "an account without credentials is denied",
		says(addonsv1.GetCredentialsFailedReason, "half\" may not get secrets"))
	w.grant("deployer", "cluster.x-k8s.io", "clusters")
	w.grant("deployer", "", "secrets")
	r := w.release("web", "theirs", as("deployer"))
	w.await(r, "an account with permissions installs", isReady)
	if calls := append(w.tool.did("plain"), append(w.tool.did("nobody"), w.tool.did("half")...)...); len(calls) > 0 {
		t.Errorf("denied releases did %v", calls)
	}
	want := "system:serviceaccount:" + w.namespace + ":deployer"
	if got := w.tool.user("web"); got != want {
		t.Errorf("the release was installed as %q, want %q", got, want)
	}

	t.Log("a no-op asks nothing")
	asked := w.reviews.asked.Load()
	w.change(r, func(r *addonsv1.HelmReleaseProxy) { r.Labels["touched"] = "yes" })
	later := w.release("later", "mine")
	w.await(later, "a later release is ready", isReady)
	if now := w.reviews.asked.Load(); now != asked {
		t.Errorf("%d permissions were reviewed", now-asked)
	}
}
