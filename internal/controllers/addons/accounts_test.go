package addons_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// message returns the messages of a condition of all releases.
func (w *world) message(condition string) string {
	var out []string
	for _, r := range w.releases() {
		out = append(out, conditions.GetReason(&r, condition)+": "+conditions.GetMessage(&r, condition))
	}
	return strings.Join(out, "\n")
}

// allow lets a ServiceAccount of a namespace of the same name write what the chart contains, on the
// first cluster and only in the target namespace.
func (w *world) allow(account string) {
	w.Helper()
	on := workloads.All()[0].Clientset(w)
	meta := metav1.ObjectMeta{Namespace: w.target, Name: account}
	_, err := on.CoreV1().Namespaces().Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.target}}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	_, err = on.RbacV1().Roles(w.target).Create(w.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"*"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	_, err = on.RbacV1().RoleBindings(w.target).Create(w.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: account}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

// TestServiceAccountLimitsReleases installs with an account that has permissions on neither side,
// then on the management plane, then in one namespace of the cluster.
func TestServiceAccountLimitsReleases(t *testing.T) {
	w := newWorld(t)
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{TLS: true})
	repository.Publish("greeter", "1.0.0", greeter(t, "1.0.0"))
	only := func(s *spec) {
		s.ClusterSelector.MatchLabels = map[string]string{"name": "a"}
		s.ServiceAccountName = "deployer"
	}
	p := w.proxy("limited", repository.URL, w.trust(repository), only)
	w.create(p)
	w.until("the Secret with the CA is denied", func() bool {
		return strings.Contains(w.message(addonsv1.ClusterAvailable), `GetCACertificateFailed: Service account "`+w.namespace+`/deployer" may not get secrets`)
	})
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: "deployer"}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"ca"}, Verbs: []string{"get"}}}}
	if _, err := w.server.Clientset(t).RbacV1().Roles(w.namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "deployer"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: "deployer"}},
	}
	if _, err := w.server.Clientset(t).RbacV1().RoleBindings(w.namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the cluster denies the account", func() bool {
		return strings.Contains(w.message(addonsv1.ReleaseReady), `User "system:serviceaccount:`+w.namespace+`:deployer" cannot`)
	})
	if text := w.text("limited"); text[0] != "" {
		t.Errorf("the release was installed: %q", text)
	}
	w.allow("deployer")
	w.awaitReady(p, 1)
	if text := w.text("limited"); text[0] == "" {
		t.Error("the release was not installed")
	}
	if err := w.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.until("the release is uninstalled", func() bool { return w.text("limited")[0] == "" && len(w.releases()) == 0 })
}

func TestTenantsMustNameAnAccount(t *testing.T) {
	w := newWorld(t)
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{TLS: true})
	repository.Publish("greeter", "1.0.0", greeter(t, "1.0.0"))
	early := w.proxy("early", repository.URL, w.trust(repository), func(s *spec) { s.ClusterSelector.MatchLabels = map[string]string{"name": "a"} })
	w.create(early)
	w.awaitReady(early, 1)
	namespace := &corev1.Namespace{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: w.namespace}, namespace); err != nil {
		t.Fatal(err)
	}
	before := namespace.DeepCopy()
	metav1.SetMetaDataLabel(&namespace.ObjectMeta, config.TenantLabel, "true")
	if err := w.Patch(t.Context(), namespace, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.until("add-ons without an account are rejected", func() bool {
		err := w.Create(t.Context(), w.proxy("late", repository.URL), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "spec.serviceAccountName: Required value: namespace")
	})
	if err := w.Create(t.Context(), w.proxy("late", repository.URL, func(s *spec) { s.ServiceAccountName = "deployer" }), client.DryRunAll); err != nil {
		t.Error(err)
	}
	for i, r := range w.releases() {
		touched := w.releases()[i].DeepCopy()
		metav1.SetMetaDataLabel(&touched.ObjectMeta, "touched", "yes")
		if err := w.Patch(t.Context(), touched, client.MergeFrom(&r)); err != nil {
			t.Fatal(err)
		}
	}
	w.until("existing releases stop", func() bool {
		return strings.Contains(w.message(addonsv1.ClusterAvailable), "AccessDenied: Namespace")
	})
	if text := w.text("early"); text[0] == "" {
		t.Error("the release was uninstalled")
	}
}
