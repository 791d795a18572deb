package inspect

import (
	"errors"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

func TestCreatorReadsTheKubeconfigCopy(t *testing.T) {
	server := kubetest.SharedWithoutWebhooks(t)
	ns, all := server.Namespace(t), server.Clientset(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for namespace, content := range map[string]string{ns: kubetest.ExampleKubeconfig("copy"), anywherev1.SystemNamespace: kubetest.ExampleKubeconfig("original")} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "one-kubeconfig"}, Data: map[string][]byte{"value": []byte(content)}}
		_, err := all.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{})
		must(err)
	}
	_, err := all.RbacV1().Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"one-kubeconfig"}, Verbs: []string{"get"},
	}}}, metav1.CreateOptions{})
	must(err)
	_, err = all.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "one"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "one"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "creator"}},
	}, metav1.CreateOptions{})
	must(err)

	as := func(user string) *Plane {
		cfg := rest.CopyConfig(server.Config)
		cfg.Impersonate.UserName = user
		p, err := Connect(cfg)
		must(err)
		return p
	}
	one := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"}}
	if data, err := as("creator").Kubeconfig(t.Context(), one); err != nil || string(data) != kubetest.ExampleKubeconfig("copy") {
		t.Errorf("the creator reads %q (%v), want the copy", data, err)
	}
	if _, err := as("stranger").Kubeconfig(t.Context(), one); !apierrors.IsForbidden(err) {
		t.Errorf("another user gets error %v, want forbidden", err)
	}
	elsewhere := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}
	if data, err := as("").Kubeconfig(t.Context(), elsewhere); err != nil || string(data) != kubetest.ExampleKubeconfig("original") {
		t.Errorf("the administrator reads %q (%v), want the original", data, err)
	}
}

func TestMissingClusterIsNotFoundForCreators(t *testing.T) {
	server := kubetest.SharedWithoutWebhooks(t)
	ns, all := server.Namespace(t), server.Clientset(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "clusters"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{anywherev1.GroupVersion.Group}, Resources: []string{"clusters"}, Verbs: []string{"get", "list"},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "clusters"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "clusters"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "reader"}},
	}
	if _, err := all.RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := all.RbacV1().RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cfg := rest.CopyConfig(server.Config)
	cfg.Impersonate.UserName = "reader"
	p, err := Connect(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.Own = ns
	var missing *NotFoundError
	if _, err := p.KubeconfigSource(t.Context(), "", "absent"); !errors.As(err, &missing) {
		t.Errorf("error %v, want a NotFoundError", err)
	}
}
