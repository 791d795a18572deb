package install_test

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// attributes describe a request.
type attributes = authorizationv1.ResourceAttributes

const (
	anywhere = "anywhere.eks.amazonaws.com"
	secrets  = "eksa-system"
)

func TestUserRoles(t *testing.T) {
	s := kubetest.Shared(t, install.Options{WebhookURL: url, Version: "v1.2.0"})
	own, foreign := s.Namespace(t), s.Namespace(t)
	bind(t, s, own, "drover-cluster-creator", "creator")
	bind(t, s, "", "drover-cluster-admin", "admin")
	bind(t, s, "", "drover-viewer", "viewer")
	for _, tc := range []struct {
		user, does string
		allowed    bool
		attributes
	}{
		{user: "creator", does: "create clusters", allowed: true, attributes: attributes{Verb: "create", Group: anywhere, Resource: "clusters", Namespace: own}},
		{user: "creator", does: "upgrade clusters", allowed: true, attributes: attributes{Verb: "patch", Group: anywhere, Resource: "clusters", Namespace: own}},
		{user: "creator", does: "delete clusters", allowed: true, attributes: attributes{Verb: "delete", Group: anywhere, Resource: "clusters", Namespace: own}},
		{user: "creator", does: "describe machines", allowed: true, attributes: attributes{Verb: "create", Group: anywhere, Resource: "packetmachineconfigs", Namespace: own}},
		{user: "creator", does: "install packages", allowed: true, attributes: attributes{Verb: "create", Group: "packages.eks.amazonaws.com", Resource: "packages", Namespace: own}},
		{user: "creator", does: "change specs in Git", allowed: true, attributes: attributes{Verb: "create", Group: "drover.dev", Resource: "gitchanges", Namespace: own}},
		{user: "creator", does: "follow that", allowed: true, attributes: attributes{Verb: "watch", Group: "drover.dev", Resource: "gitchanges", Namespace: own}},
		{user: "creator", does: "change specs in Git elsewhere", attributes: attributes{Verb: "create", Group: "drover.dev", Resource: "gitchanges", Namespace: foreign}},
		{user: "creator", does: "claim that a change was committed", attributes: attributes{Verb: "patch", Group: "drover.dev", Resource: "gitchanges", Subresource: "status", Namespace: own}},
		{user: "creator", does: "read Git credentials", attributes: attributes{Verb: "get", Resource: "secrets", Namespace: "flux-system", Name: "flux-system"}},
		{user: "creator", does: "create clusters elsewhere", attributes: attributes{Verb: "create", Group: anywhere, Resource: "clusters", Namespace: foreign}},
		{user: "creator", does: "see clusters of others", attributes: attributes{Verb: "list", Group: anywhere, Resource: "clusters"}},
		{user: "creator", does: "say what became of a cluster", attributes: attributes{Verb: "patch", Group: anywhere, Resource: "clusters", Subresource: "status", Namespace: own}},
		{user: "creator", does: "read what runs on the management plane", allowed: true, attributes: attributes{Verb: "get", Resource: "configmaps", Namespace: secrets, Name: "drover-about"}},
		{user: "creator", does: "change what is said to run there", attributes: attributes{Verb: "update", Resource: "configmaps", Namespace: secrets, Name: "drover-about"}},
		{user: "creator", does: "read other settings there", attributes: attributes{Verb: "get", Resource: "configmaps", Namespace: secrets, Name: "others"}},
		{user: "creator", does: "list settings there", attributes: attributes{Verb: "list", Resource: "configmaps", Namespace: secrets}},
		{user: "creator", does: "read secrets of their namespace", attributes: attributes{Verb: "get", Resource: "secrets", Namespace: own}},
		{user: "creator", does: "list secrets of their namespace", attributes: attributes{Verb: "list", Resource: "secrets", Namespace: own}},
		{user: "creator", does: "read credentials of infrastructure", attributes: attributes{Verb: "get", Resource: "secrets", Namespace: secrets, Name: "local-metal"}},
		{user: "creator", does: "read a kubeconfig of others", attributes: attributes{Verb: "get", Resource: "secrets", Namespace: secrets, Name: "billy-kubeconfig"}},
		{user: "creator", does: "order machines past Drover", attributes: attributes{Verb: "create", Group: "infrastructure.cluster.x-k8s.io", Resource: "packetmachines", Namespace: own}},
		{user: "creator", does: "put charts on clusters", attributes: attributes{Verb: "create", Group: "addons.cluster.x-k8s.io", Resource: "helmchartproxies", Namespace: own}},
		{user: "creator", does: "rewrite history", attributes: attributes{Verb: "delete", Group: "drover.dev", Resource: "auditrecords"}},
		{user: "creator", does: "give rights away", attributes: attributes{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "rolebindings", Namespace: own}},

		{user: "admin", does: "create clusters anywhere", allowed: true, attributes: attributes{Verb: "create", Group: anywhere, Resource: "clusters", Namespace: foreign}},
		{user: "admin", does: "read what runs on the management plane", allowed: true, attributes: attributes{Verb: "get", Resource: "configmaps", Namespace: secrets, Name: "drover-about"}},
		{user: "admin", does: "replace credentials of infrastructure", allowed: true, attributes: attributes{Verb: "update", Resource: "secrets", Namespace: secrets}},
		{user: "admin", does: "change specs in Git", allowed: true, attributes: attributes{Verb: "create", Group: "drover.dev", Resource: "gitchanges", Namespace: foreign}},
		{user: "admin", does: "read who did what", allowed: true, attributes: attributes{Verb: "list", Group: "drover.dev", Resource: "auditrecords"}},
		{user: "admin", does: "read credentials of infrastructure", attributes: attributes{Verb: "get", Resource: "secrets", Namespace: secrets}},
		{user: "admin", does: "read credentials in the answer to a patch", attributes: attributes{Verb: "patch", Resource: "secrets", Namespace: secrets}},
		{user: "admin", does: "rewrite history", attributes: attributes{Verb: "delete", Group: "drover.dev", Resource: "auditrecords"}},
		{user: "admin", does: "run things on the management plane", attributes: attributes{Verb: "create", Resource: "pods", Namespace: secrets}},

		{user: "viewer", does: "see all clusters", allowed: true, attributes: attributes{Verb: "list", Group: anywhere, Resource: "clusters"}},
		{user: "viewer", does: "read what runs on the management plane", allowed: true, attributes: attributes{Verb: "get", Resource: "configmaps", Namespace: secrets, Name: "drover-about"}},
		{user: "viewer", does: "see machines", allowed: true, attributes: attributes{Verb: "watch", Group: "cluster.x-k8s.io", Resource: "machines"}},
		{user: "viewer", does: "see changes of specs in Git", allowed: true, attributes: attributes{Verb: "list", Group: "drover.dev", Resource: "gitchanges"}},
		{user: "viewer", does: "see schedules of snapshots", allowed: true, attributes: attributes{Verb: "list", Group: "drover.dev", Resource: "etcdsnapshotschedules"}},
		{user: "admin", does: "choose who can decrypt snapshots", attributes: attributes{Verb: "create", Group: "drover.dev", Resource: "etcdsnapshotschedules", Namespace: foreign}},
		{user: "creator", does: "choose who can decrypt snapshots", attributes: attributes{Verb: "create", Group: "drover.dev", Resource: "etcdsnapshotschedules", Namespace: own}},
		{user: "viewer", does: "change specs in Git", attributes: attributes{Verb: "create", Group: "drover.dev", Resource: "gitchanges", Namespace: own}},
		{user: "viewer", does: "change clusters", attributes: attributes{Verb: "patch", Group: anywhere, Resource: "clusters", Namespace: own}},
		{user: "viewer", does: "read secrets", attributes: attributes{Verb: "get", Resource: "secrets", Namespace: own}},
		{user: "viewer", does: "see what userdata is made from", attributes: attributes{Verb: "get", Group: "bootstrap.cluster.x-k8s.io", Resource: "kubeadmconfigs", Namespace: secrets}},
	} {
		t.Run(tc.user+" may "+tc.does, func(t *testing.T) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: tc.user, Groups: []string{"system:authenticated"}, ResourceAttributes: &tc.attributes,
			}}
			answer, err := s.Clientset(t).AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if answer.Status.Allowed != tc.allowed {
				t.Errorf("allowed is %t, want %t: %s", answer.Status.Allowed, tc.allowed, answer.Status.Reason)
			}
		})
	}
}

// bind grants a user a role in a namespace, or in all of them.
func bind(t *testing.T, s *kubetest.Server, namespace, role, user string) {
	t.Helper()
	var err error
	meta := metav1.ObjectMeta{Name: "test-" + user}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	if rbac := s.Clientset(t).RbacV1(); namespace == "" {
		_, err = rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	} else {
		_, err = rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
