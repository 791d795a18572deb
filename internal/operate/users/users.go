// Package users manages access to a management cluster that has no identity provider: a user is a
// ServiceAccount in a namespace, bound to one of the roles that Drover installs, with a kubeconfig
// that contains a token. Start with Directory.
package users

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/config"
)

// roleLabel marks the objects of a user and holds the role.
const roleLabel = "users.drover.dev/role"

// Shortest is the shortest lifetime of a token that API servers accept.
const Shortest = 10 * time.Minute

// roles maps the roles of users to the ClusterRoles that Drover installs.
var roles = map[string]string{"creator": "drover-cluster-creator", "viewer": "drover-viewer"}

// Roles returns the roles that a user can have.
func Roles() []string { return []string{"creator", "viewer"} }

// User is a user of a management cluster.
type User struct {
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Role      string      `json:"role"`
	Since     metav1.Time `json:"since"`
}

// Check reports every problem of a user that can be found without the API server.
func (u User) Check() error {
	var problems []error
	for what, value := range map[string]string{"name": u.Name, "namespace": u.Namespace} {
		if wrong := validation.IsDNS1123Label(value); len(wrong) > 0 {
			problems = append(problems, fmt.Errorf("%s %q: %s", what, value, wrong[0]))
		}
	}
	if roles[u.Role] == "" {
		problems = append(problems, fmt.Errorf("unknown role %q; use %s", u.Role, strings.Join(Roles(), " or ")))
	}
	if isSystem(u.Namespace) {
		problems = append(problems, fmt.Errorf("namespace %q is reserved for the system; choose another one, such as %q", u.Namespace, "team-"+u.Name))
	}
	slices.SortFunc(problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}

func isSystem(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || strings.HasPrefix(namespace, packagesv1.Namespace) ||
		slices.Contains([]string{anywherev1.SystemNamespace, config.Namespace}, namespace)
}

// Directory holds the users of a management cluster.
type Directory struct {
	api    kubernetes.Interface
	server *rest.Config
}

// Open returns the directory of a management cluster. Kubeconfigs of its users contain the same
// address of the API server.
func Open(server *rest.Config) (*Directory, error) {
	api, err := kubernetes.NewForConfig(server)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", server.Host, err)
	}
	return &Directory{api: api, server: server}, nil
}

// Add creates a user, and the namespace if necessary. Adding an existing user changes nothing.
// Changing the role of a user requires removing the user first.
func (d *Directory) Add(ctx context.Context, u User) error {
	if err := u.Check(); err != nil {
		return err
	}
	if err := d.available(ctx, u); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: u.Namespace, Name: u.Name, Labels: map[string]string{roleLabel: u.Role}}
	for _, part := range []struct {
		kind   string
		create func() error
	}{
		{"namespace", func() error {
			_, err := d.api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: u.Namespace}}, metav1.CreateOptions{})
			return err
		}},
		{"ServiceAccount", func() error {
			_, err := d.api.CoreV1().ServiceAccounts(u.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
			return err
		}},
		{"RoleBinding", func() error {
			binding := &rbacv1.RoleBinding{
				ObjectMeta: meta,
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roles[u.Role]},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: u.Namespace, Name: u.Name}},
			}
			binding.Name = bindingOf(u.Name)
			_, err := d.api.RbacV1().RoleBindings(u.Namespace).Create(ctx, binding, metav1.CreateOptions{})
			return err
		}},
	} {
		if err := part.create(); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating the %s of user %q: %w", part.kind, u.Name, err)
		}
	}
	return nil
}

func bindingOf(user string) string { return "user-" + user }

// available returns an error if an object with another purpose has the name of the user, or the
// user has another role.
func (d *Directory) available(ctx context.Context, u User) error {
	if _, err := d.api.RbacV1().ClusterRoles().Get(ctx, roles[u.Role], metav1.GetOptions{}); apierrors.IsNotFound(err) {
		return fmt.Errorf("ClusterRole %q not found; check that %s is a Drover management cluster", roles[u.Role], d.server.Host)
	} else if err != nil {
		return fmt.Errorf("reading ClusterRole %q: %w", roles[u.Role], err)
	}
	account, err := d.api.CoreV1().ServiceAccounts(u.Namespace).Get(ctx, u.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading the ServiceAccount of user %q: %w", u.Name, err)
	case account.Labels[roleLabel] == "":
		return fmt.Errorf("ServiceAccount %q in namespace %q does not belong to a user; choose another name", u.Name, u.Namespace)
	case account.Labels[roleLabel] != u.Role:
		return fmt.Errorf("user %q in namespace %q already has the role %s; to change it, first run `drover delete user %s -n %s`",
			u.Name, u.Namespace, account.Labels[roleLabel], u.Name, u.Namespace)
	}
	binding, err := d.api.RbacV1().RoleBindings(u.Namespace).Get(ctx, bindingOf(u.Name), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading the RoleBinding of user %q: %w", u.Name, err)
	case binding.Labels[roleLabel] == "" || binding.RoleRef.Name != roles[u.Role]:
		return fmt.Errorf("RoleBinding %q in namespace %q does not belong to the user; delete it or choose another name", binding.Name, u.Namespace)
	}
	return nil
}

// Kubeconfig returns a kubeconfig with a new token and when the token expires. The API server may
// choose a shorter lifetime.
func (d *Directory) Kubeconfig(ctx context.Context, u User, valid time.Duration) (*clientcmdapi.Config, time.Time, error) {
	seconds := int64(valid.Seconds())
	token, err := d.api.CoreV1().ServiceAccounts(u.Namespace).CreateToken(ctx, u.Name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("creating a token for user %q: %w", u.Name, err)
	}
	server := rest.CopyConfig(d.server)
	if err := rest.LoadTLSFiles(server); err != nil {
		return nil, time.Time{}, fmt.Errorf("reading the certificate authority of %s: %w", server.Host, err)
	}
	out := clientcmdapi.NewConfig()
	out.Clusters["management"] = &clientcmdapi.Cluster{
		Server: server.Host, CertificateAuthorityData: server.CAData, TLSServerName: server.ServerName, InsecureSkipTLSVerify: server.Insecure,
	}
	out.AuthInfos[u.Name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	out.Contexts[u.Name] = &clientcmdapi.Context{Cluster: "management", AuthInfo: u.Name, Namespace: u.Namespace}
	out.CurrentContext = u.Name
	return out, token.Status.ExpirationTimestamp.Time, nil
}

// List returns the users of a namespace, or of all namespaces if it is empty.
func (d *Directory) List(ctx context.Context, namespace string) ([]User, error) {
	accounts, err := d.api.CoreV1().ServiceAccounts(namespace).List(ctx, metav1.ListOptions{LabelSelector: roleLabel})
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	out := make([]User, 0, len(accounts.Items))
	for _, a := range accounts.Items {
		out = append(out, User{Namespace: a.Namespace, Name: a.Name, Role: a.Labels[roleLabel], Since: a.CreationTimestamp})
	}
	return out, nil
}

// Remove deletes a user and thereby invalidates all tokens. The clusters of the user remain.
func (d *Directory) Remove(ctx context.Context, namespace, name string) error {
	accounts, bindings := d.api.CoreV1().ServiceAccounts(namespace), d.api.RbacV1().RoleBindings(namespace)
	account, err := accounts.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && account.Labels[roleLabel] == "" {
		return fmt.Errorf("user %q not found in namespace %q; see `drover get users`", name, namespace)
	}
	if err != nil {
		return fmt.Errorf("reading user %q: %w", name, err)
	}
	binding, err := bindings.Get(ctx, bindingOf(name), metav1.GetOptions{})
	if err == nil && binding.Labels[roleLabel] != "" {
		err = bindings.Delete(ctx, binding.Name, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the RoleBinding of user %q: %w", name, err)
	}
	// Deleted last, because the user can be removed again as long as it exists.
	if err := accounts.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the ServiceAccount of user %q: %w", name, err)
	}
	return nil
}
