// Package users gives people a way into a management cluster where nobody else says who they are: a ServiceAccount in a namespace of theirs,
// one of the roles that come with Drover, and a kubeconfig with a token. Start with Directory.
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

// roleLabel is on what is made for a user, and says in a word what they may do.
const roleLabel = "users.drover.dev/role"

// Shortest is how long a token is good for at least: API servers give none for less.
const Shortest = 10 * time.Minute

// roles are those that come with Drover for people who have a namespace.
var roles = map[string]string{"creator": "drover-cluster-creator", "viewer": "drover-viewer"}

// Roles are what a user can be.
func Roles() []string { return []string{"creator", "viewer"} }

// User is somebody who has a way in.
type User struct {
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Role      string      `json:"role"`
	Since     metav1.Time `json:"since"`
}

// Check says what is wrong with a user before anybody is asked.
func (u User) Check() error {
	var problems []error
	for what, value := range map[string]string{"name": u.Name, "namespace": u.Namespace} {
		if wrong := validation.IsDNS1123Label(value); len(wrong) > 0 {
			problems = append(problems, fmt.Errorf("%s %q: %s", what, value, wrong[0]))
		}
	}
	if roles[u.Role] == "" {
		problems = append(problems, fmt.Errorf("role %q: use %s", u.Role, strings.Join(Roles(), " or ")))
	}
	if ofSystem(u.Namespace) {
		problems = append(problems, fmt.Errorf("namespace %q belongs to the system: choose one of the user's own, such as %q", u.Namespace, "team-"+u.Name))
	}
	slices.SortFunc(problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}

func ofSystem(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || strings.HasPrefix(namespace, packagesv1.Namespace) ||
		slices.Contains([]string{anywherev1.SystemNamespace, config.Namespace}, namespace)
}

// Directory is who has a way into a management cluster.
type Directory struct {
	api kubernetes.Interface
	way *rest.Config
}

// Open returns the directory of a management cluster. The kubeconfigs that it gives lead the same way.
func Open(way *rest.Config) (*Directory, error) {
	api, err := kubernetes.NewForConfig(way)
	if err != nil {
		return nil, err
	}
	return &Directory{api: api, way: way}, nil
}

// Add lets a user in. One who is there already is given a new token; to have another role, a user is removed first.
func (d *Directory) Add(ctx context.Context, u User) error {
	if err := u.Check(); err != nil {
		return err
	}
	if err := d.free(ctx, u); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: u.Namespace, Name: u.Name, Labels: map[string]string{roleLabel: u.Role}}
	for _, part := range []struct {
		what string
		make func() error
	}{
		{"namespace " + u.Namespace, func() error {
			_, err := d.api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: u.Namespace}}, metav1.CreateOptions{})
			return err
		}},
		{"the account", func() error {
			_, err := d.api.CoreV1().ServiceAccounts(u.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
			return err
		}},
		{"the binding of the role", func() error {
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
		if err := part.make(); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making %s for user %q: %w", part.what, u.Name, err)
		}
	}
	return nil
}

func bindingOf(user string) string { return "user-" + user }

// free says that nothing is in the way of a user.
func (d *Directory) free(ctx context.Context, u User) error {
	if _, err := d.api.RbacV1().ClusterRoles().Get(ctx, roles[u.Role], metav1.GetOptions{}); apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no role %q: is %s a management cluster of Drover?", roles[u.Role], d.way.Host)
	} else if err != nil {
		return fmt.Errorf("reading role %q: %w", roles[u.Role], err)
	}
	account, err := d.api.CoreV1().ServiceAccounts(u.Namespace).Get(ctx, u.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("reading the account of user %q: %w", u.Name, err)
	case account.Labels[roleLabel] == "":
		return fmt.Errorf("namespace %q has a ServiceAccount %q that was made for something else: choose another name", u.Namespace, u.Name)
	case account.Labels[roleLabel] != u.Role:
		return fmt.Errorf("user %q of namespace %q is a %s: remove them first with `drover delete user %s -n %s`, or leave the role as it is",
			u.Name, u.Namespace, account.Labels[roleLabel], u.Name, u.Namespace)
	}
	binding, err := d.api.RbacV1().RoleBindings(u.Namespace).Get(ctx, bindingOf(u.Name), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading the role of user %q: %w", u.Name, err)
	case binding.Labels[roleLabel] == "" || binding.RoleRef.Name != roles[u.Role]:
		return fmt.Errorf("namespace %q has a RoleBinding %q that is for something else: remove it, or choose another name", u.Namespace, binding.Name)
	}
	return nil
}

// Kubeconfig is a new way in for a user, and when it ends: an API server may give less time than is asked for.
func (d *Directory) Kubeconfig(ctx context.Context, u User, valid time.Duration) (*clientcmdapi.Config, time.Time, error) {
	seconds := int64(valid.Seconds())
	token, err := d.api.CoreV1().ServiceAccounts(u.Namespace).CreateToken(ctx, u.Name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("asking for a token of user %q: %w", u.Name, err)
	}
	way := rest.CopyConfig(d.way)
	if err := rest.LoadTLSFiles(way); err != nil {
		return nil, time.Time{}, fmt.Errorf("reading the certificate of %s: %w", way.Host, err)
	}
	out := clientcmdapi.NewConfig()
	out.Clusters["management"] = &clientcmdapi.Cluster{
		Server: way.Host, CertificateAuthorityData: way.CAData, TLSServerName: way.ServerName, InsecureSkipTLSVerify: way.Insecure,
	}
	out.AuthInfos[u.Name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	out.Contexts[u.Name] = &clientcmdapi.Context{Cluster: "management", AuthInfo: u.Name, Namespace: u.Namespace}
	out.CurrentContext = u.Name
	return out, token.Status.ExpirationTimestamp.Time, nil
}

// List are the users of a namespace, or all.
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

// Remove ends a user's way in, with all tokens. Clusters that they made stay.
func (d *Directory) Remove(ctx context.Context, namespace, name string) error {
	accounts, bindings := d.api.CoreV1().ServiceAccounts(namespace), d.api.RbacV1().RoleBindings(namespace)
	account, err := accounts.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && account.Labels[roleLabel] == "" {
		return fmt.Errorf("namespace %q has no user %q: see `drover get users`", namespace, name)
	}
	if err != nil {
		return fmt.Errorf("reading user %q: %w", name, err)
	}
	binding, err := bindings.Get(ctx, bindingOf(name), metav1.GetOptions{})
	if err == nil && binding.Labels[roleLabel] != "" {
		err = bindings.Delete(ctx, binding.Name, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the role of user %q: %w", name, err)
	}
	// The account goes last: as long as it is there, the user can be removed again.
	if err := accounts.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing user %q: %w", name, err)
	}
	return nil
}
