package fleet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Roles of the accounts with which Flux applies clusters. The manager may bind only these.
const (
	creatorRole = "drover-cluster-creator"
	adminRole   = "drover-cluster-admin"
)

// grant is an account and what it may do in the namespace of a cluster.
type grant struct {
	account   client.ObjectKey
	namespace string
	role      string
}

// grantOf returns the grant for the Kustomizations of a cluster. Workload clusters are applied with
// an account of their namespace; the management cluster with one in the namespace of Flux, which
// its users can't use.
func (p placement) grantOf() grant {
	g := grant{account: client.ObjectKey{Namespace: p.namespace, Name: anywherev1.GitAccount}, namespace: p.entry.key.Namespace, role: creatorRole}
	if p.namespace != p.entry.key.Namespace {
		g.role = adminRole
	}
	return g
}

// objects returns the account and the binding. A binding can't change its role, so each role has a
// name of its own.
func (g grant) objects() []client.Object {
	labels := map[string]string{ManagedByLabel: ManagedBy}
	name := anywherev1.GitAccount
	if g.role == adminRole {
		name += "-admin"
	}
	return []client.Object{
		&corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Namespace: g.account.Namespace, Name: g.account.Name, Labels: labels},
		},
		&rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: name, Labels: labels},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: g.role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: g.account.Namespace, Name: g.account.Name}},
		},
	}
}

// ensureAccount grants once for each commit, so that an account that somebody deleted comes back.
func (c *Controller) ensureAccount(ctx context.Context, s *scope, g grant) error {
	if s.granted[g] {
		return nil
	}
	for _, o := range g.objects() {
		if err := Apply(ctx, c.Client, o); err != nil {
			return err
		}
	}
	s.granted[g] = true
	return nil
}
